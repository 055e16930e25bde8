"""The command `kalarena`: one file per subcommand, each loaded only when it is used."""

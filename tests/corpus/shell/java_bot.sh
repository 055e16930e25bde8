#!/bin/sh
# Goes to its own directory and becomes the bot of a jar.
cd "$(dirname "$0")" || exit 1
exec java -jar lib/bot.jar

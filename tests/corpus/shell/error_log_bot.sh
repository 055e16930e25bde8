#!/bin/bash
# Runs a jar with its standard error in a file, and waits for the end of Java.
DIR="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"
cd "$DIR"
java -cp "$DIR/bot.jar" DebugBot 2> error.log

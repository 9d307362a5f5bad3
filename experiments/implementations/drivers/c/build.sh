#!/bin/sh
# Build the static library librdkafka from the sources in a package of another library, and two
# drivers: one has an address sanitizer.
# Usage: build.sh PACKAGE@VERSION VERSION_OF_LIBRDKAFKA, in an empty directory
set -eu
drivers=$(dirname "$0")
earlier=${PWD%.*}/library
if [ -d "$earlier" ]; then  # Another driver does not change the library.
    cp -R "$earlier" library
else
    npm pack --silent "$1"
    tar -xzf ./*.tgz
    mkdir library
    mv package/deps/librdkafka build
    cd build
    find . -name configure -o -name lds-gen.py -o -name '*.sh' | xargs chmod 755
    features="ssl gssapi zstd zlib lz4-ext syslog"
    case $2 in 1.8.*) ;; *) features="$features curl" ;; esac
    for feature in $features; do set -- "$@" "--disable-$feature"; done
    shift 2
    ./configure "$@"
    make -C src -j "$(getconf _NPROCESSORS_ONLN)" librdkafka.a
    find src -name '*.o' -o -name '*.d' -o -name librdkafka-dbg.a | xargs rm -f
    cp -R src config.h ../library
    cd ..
    rm -rf build package ./*.tgz
fi
compiler="cc -g -O2 -w -fdebug-prefix-map=$PWD/library/src=librdkafka"
$compiler -I library/src -I "$drivers" -o driver \
    "$drivers/driver.c" library/src/librdkafka.a -lm -lpthread -ldl -lrt
$compiler -I library/src -I "$drivers" -fsanitize=address -o driver-address \
    "$drivers/driver.c" library/src/rdkafka_*assignor.c library/src/librdkafka.a \
    -lm -lpthread -ldl -lrt

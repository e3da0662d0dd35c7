"$SOURCE/package/copy.sh" "$SOURCE" perfkit
[ ! -e "$SOURCE/build/charts" ] || { mkdir perfkit/build && cp -r "$SOURCE/build/charts" perfkit/build/; }

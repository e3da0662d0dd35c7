mkdir perfkit
tar -C "$SOURCE" --exclude='./build*' --exclude=./.git --exclude=./subprojects -c . | tar -C perfkit -x
[ ! -e "$SOURCE/build/charts" ] || { mkdir perfkit/build && cp -r "$SOURCE/build/charts" perfkit/build/; }

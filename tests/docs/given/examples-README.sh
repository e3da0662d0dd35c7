cp "$SOURCE"/examples/*.c .
ln -s "$BUILD" build

# Build the package for Debian, Ubuntu and their derivatives. Sourced by dist.sh.
here=packaging/deb
tree=$work/deb
install_tree "$tree" /usr

# Below /usr, Debian's zsh searches only this folder.
mkdir -p "$tree/usr/share/zsh/vendor-completions"
mv "$tree/usr/share/zsh/site-functions/_lissom" "$tree/usr/share/zsh/vendor-completions/"
rmdir "$tree/usr/share/zsh/site-functions"

doc=$tree/usr/share/doc/lissom
install -m 644 "$here/copyright" "$doc/copyright"
sed "s/@VERSION@/$version/; s/@DATE@/$(date -uR -d "@$SOURCE_DATE_EPOCH")/" "$here/changelog" | gzip -9n >"$doc/changelog.gz"
# Debian's libraries are not executable; the loader does not require it.
chmod 644 "$tree"/usr/lib/lissom/*.so
gzip -9n "$doc/third-party.txt" "$tree"/usr/share/man/man1/*.1
install -D -m 644 "$here/lintian-overrides" "$tree/usr/share/lintian/overrides/lissom"

install -d "$tree/DEBIAN"
install -m 755 -t "$tree/DEBIAN" "$here/postinst" "$here/prerm" "$here/postrm"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
size=$(du --apparent-size -sk "$tree/usr" | cut -f 1)
sed "s/@VERSION@/$version/; s/@SIZE@/$size/" "$here/control" >"$tree/DEBIAN/control"
chmod 644 "$tree/DEBIAN/control" "$tree/DEBIAN/md5sums"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/lissom_${version}_amd64.deb" >/dev/null

# Build the package for Fedora, RHEL, openSUSE and their derivatives. Sourced by dist.sh.
tree=$work/rpm
install_tree "$tree" /usr
install -D -m 644 -t "$tree/usr/share/licenses/lissom" LICENSE LICENSES/*
gzip -9n "$tree"/usr/share/man/man1/*.1
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rpmbuild -bb --quiet --target x86_64-linux \
    --define "version $version" --define "tree $tree" --define "_topdir $work/rpmbuild" \
    --define "_rpmdir $out" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
    --define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "_build_id_links none" \
    --define "_binary_payload w6.xzdio" packaging/rpm/lissom.spec >"$work/rpmbuild.log" 2>&1 ||
    { cat "$work/rpmbuild.log" >&2; exit 1; }

# make demo     run one oversubscribed program natively and under lissom (about a minute)
# make test     run the tests that every change has to pass: unit tests, changed models, C drivers,
#               cases once at each level
# make test-all run all tests: all levels and ratios, models, mutants, breakages, virtual machines,
#               clusters, packages, public suites, fuzzing (hours); PARTS="cases vm": only these
# make bench    measure the tables of docs/results/sync.md on this machine (40 minutes)
# make report   measure every figure of the study with few runs: lissom-study/report.html
#               (20 minutes)
# make fuzz     fuzz each parser of data from other processes with 10 million inputs
#               (FUZZ_INPUTS=; 15 minutes)
# make lint     check formatting, warnings and the rules of scripts/lint.sh; scripts/format.sh
#               formats
# make conformance   run glibc's thread tests natively and under lissom (10 minutes); with
#               SUITES=DIR also the public suites with sources there (an hour;
#               tests/conformance/README.md);
#               SUITE="ltp splash3" and TESTS= select some
# make model    check the protocols with large bounds (slow)
# make kmod     build target/kmod/lissom_ple.ko for `lissom kvm apple`; KDIR=: another kernel's
#               build tree
# make slurm    build target/slurm/lissom_spank.so for `srun --lissom` (docs/operate/slurm.md);
#               `make install install-slurm` puts it beside the runtime
# make test-slurm   test the Slurm plugin in a Slurm of its own (a minute)
# make test-recipes   run the recipes of docs/guide with the real programs: R, MPI, joblib, Dask,
#               Ray, pytest, Jupyter, CI, launchers (5 minutes); TESTS= selects some
# make test-dashboard   send the queries of packaging/grafana to a real Prometheus (a minute)
# make test-kvm test `lissom kvm` in virtual machines, in software emulation (5 minutes)
# make test-vm  test `lissom sched` in virtual machines, in software emulation (30 minutes);
#               KERNELS="6.18 7.3" and TESTS= select some
# make test-kubernetes   test the node agent of packaging/kubernetes with containerd's NRI and
#               with a real containerd (10 minutes, mostly building it)
# make steps    count the instructions of a wait and a wake, by function (tests/steps)
# make build    build target/release/lissom
# make install  install into $(DESTDIR)$(PREFIX)
# make dist     build packages for Debian, Fedora and pip, an archive and an image: target/dist
#               (docs/guide/install.md)
# make test-dist   install and remove them in root file systems of Debian 11 and 12, and of musl
#               (20 minutes, root); TESTS= selects some
#
# Each target first installs what it lacks (apt packages as root or with sudo, Python packages into
# target/venv) and prints that.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PREFIX ?= /usr/local
# cargo's target folder. Scripts that run without make read the variable themselves.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# rustup's folder, which is in PATH only after the next login.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: help demo test test-unit test-drivers test-cases test-all fuzz bench report lint model conformance steps kmod slurm test-slurm test-recipes test-dashboard test-kvm test-vm dist test-dist test-kubernetes build install install-slurm uninstall clean

help:
	@sed -n '/^# make demo/,/^#$$/s/^# //p' Makefile

steps: build
	@bash tests/steps/run.sh $(TARGET)/release/lissom

build:
	@scripts/need.sh build
	scripts/release.sh

demo:
	@scripts/need.sh build demo
	@scripts/release.sh --quiet
	@scripts/venv.sh
	@target/venv/bin/python3 scripts/demo.py

# Tests that every change has to pass. Last line: `N passed, M failed, K skipped`.
test:
	@scripts/need.sh test
	@$(MAKE) --no-print-directory test-unit
	bash docs/model/run.sh changed
	@$(MAKE) --no-print-directory test-drivers
	@$(MAKE) --no-print-directory test-cases

test-unit:
	@scripts/need.sh test
	cargo test --locked --workspace --lib --bins

# C programs, each of which tests one part of the runtime.
test-drivers:
	@scripts/need.sh test
	bash tests/patch/run.sh
	bash tests/spin/run.sh
	bash tests/cpus/run.sh
	bash tests/slots/run.sh
	bash tests/idle/run.sh
	bash tests/fuzz/run.sh 100000

test-cases:
	@scripts/need.sh test
	cargo test --locked --test cases

test-all:
	@bash scripts/test-all.sh $(PARTS)

FUZZ_INPUTS ?= 10000000
fuzz:
	@scripts/need.sh build
	LISSOM_FUZZ_INPUTS=$(FUZZ_INPUTS) cargo test --locked --release --bin lissom fuzz:: -- --nocapture --test-threads=1
	bash tests/fuzz/run.sh $(FUZZ_INPUTS)

bench:
	@scripts/need.sh build demo
	@scripts/release.sh --quiet
	@scripts/venv.sh
	$(TARGET)/release/lissom bench sync
	$(TARGET)/release/lissom bench ml

report:
	@scripts/need.sh build demo study
	@scripts/release.sh --quiet
	@scripts/venv.sh
	$(TARGET)/release/lissom study run all --quick --output lissom-study

lint:
	@scripts/need.sh lint
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	@scripts/lint.sh

model:
	@scripts/need.sh model
	bash docs/model/run.sh large

# CONFORMANCE=: further options, such as --list-left-out.
conformance:
	@scripts/need.sh build conformance $(if $(SUITES),conformance_suites)
	@scripts/release.sh --quiet
	@python3 scripts/conformance $(if $(SUITES),--suites "$(SUITES)") $(SUITE:%=--suite %) $(CONFORMANCE) $(TESTS)

# The kernel's compiler may have options that this machine's lacks, and the module needs no BTF.
KDIR ?= /lib/modules/$(shell uname -r)/build
KMOD ?= $(TARGET)/kmod
kmod:
	@[ -e "$(KDIR)/Makefile" ] || { echo "$(KDIR) is no build tree: install linux-headers-$(shell uname -r), or set KDIR" >&2; exit 1; }
	@mkdir -p "$(KMOD)"
	@cp kmod/Kbuild kmod/*.[ch] "$(KMOD)"
	$(MAKE) -C "$(KDIR)" M="$(abspath $(KMOD))" CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= modules

# A plugin works only with the Slurm version of the header that it was built with.
SLURM ?= $(TARGET)/slurm
slurm:
	@mkdir -p "$(SLURM)"
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -Wall -Wextra -Werror -DLISSOM_BINARY='"$(PREFIX)/bin/lissom"' packaging/slurm/lissom_spank.c -o "$(SLURM)/lissom_spank.so"

test-slurm:
	@scripts/need.sh build slurm
	@scripts/release.sh --quiet
	@bash tests/slurm/run.sh $(TESTS)

test-recipes:
	@scripts/need.sh build recipes
	@scripts/release.sh --quiet
	@scripts/venv.sh tests/recipes/requirements.txt target/venv-recipes
	@bash tests/recipes/run.sh $(TESTS)

test-dashboard:
	@scripts/need.sh build dashboard
	@scripts/release.sh --quiet
	@/usr/bin/python3 -B tests/dashboard/run.py

test-kvm:
	@scripts/need.sh kvm || true
	@bash tests/kvm/run.sh

test-vm:
	@scripts/need.sh vm || true
	@bash tests/sched/run.sh $(TESTS)

dist:
	@scripts/need.sh build dist
	@bash packaging/dist.sh

test-dist: dist
	@scripts/need.sh dist_test
	@bash tests/dist/run.sh $(TESTS)

test-kubernetes:
	@scripts/need.sh build kubernetes
	@scripts/release.sh --quiet
	@bash packaging/kubernetes/tests/run.sh

# Run `make build` as yourself, then `sudo make install`: root need not have Rust.
$(TARGET)/release/lissom:
	$(MAKE) build

BINARY ?= $(TARGET)/release/lissom
install: $(BINARY)
	install -D -m 755 "$(BINARY)" "$(DESTDIR)$(PREFIX)/bin/lissom"
	"$(BINARY)" unpack "$(DESTDIR)$(PREFIX)/lib/lissom"
	cd "$(DESTDIR)$(PREFIX)/lib/lissom" && ln -sfn "$$(ls -t liblissom-*.so | head -n 1)" liblissom.so # this name stays; unpack writes a new file each time
	"$(BINARY)" man --dir "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions"
	"$(BINARY)" completions bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/lissom"
	install -d "$(DESTDIR)$(PREFIX)/share/zsh/site-functions"
	"$(BINARY)" completions zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lissom"
	install -d "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"
	"$(BINARY)" completions fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lissom.fish"
	install -d "$(DESTDIR)$(PREFIX)/lib/systemd/system"
	for unit in lissom-manager lissom-metrics; do sed 's|/usr/local|$(PREFIX)|' packaging/$$unit.service > "$(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit.service"; done
	install -d "$(DESTDIR)$(PREFIX)/share/lissom"
	sed 's|/usr/local|$(PREFIX)|' packaging/lissom-manager-metrics.conf > "$(DESTDIR)$(PREFIX)/share/lissom/lissom-manager-metrics.conf"
	install -m 644 packaging/grafana/lissom.json "$(DESTDIR)$(PREFIX)/share/lissom/grafana.json"

install-slurm: slurm
	install -D -m 755 "$(SLURM)/lissom_spank.so" "$(DESTDIR)$(PREFIX)/lib/lissom/lissom_spank.so"
	install -d "$(DESTDIR)$(PREFIX)/share/lissom"
	sed 's|/usr/local|$(PREFIX)|g' packaging/slurm/plugstack.conf > "$(DESTDIR)$(PREFIX)/share/lissom/plugstack.conf"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/lissom" "$(DESTDIR)$(PREFIX)/share/man/man1/lissom.1" "$(DESTDIR)$(PREFIX)/share/man/man1"/lissom-*.1
	rm -rf "$(DESTDIR)$(PREFIX)/lib/lissom" "$(DESTDIR)$(PREFIX)/share/lissom"
	rm -f "$(DESTDIR)$(PREFIX)/lib/systemd/system"/lissom-{manager,metrics}.service
	rm -f "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/lissom"
	rm -f "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lissom"
	rm -f "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lissom.fish"

clean:
	rm -rf target

# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Builds, checks and installs pldk. `make help` lists the targets.
#
# Objects go to build/ (O= for another place); only what is meant to be run by its path stands in the tree:
# tools/pldrun, tools/pldctl, tools/pldbench and selftests/tutorial/*. With O= these go under O too.
# The module is built by the kernel's own rules from Kbuild, beside its sources.

VERSION := 0.1.0

O        ?= build
DESTDIR  ?=
PREFIX   ?= /usr/local
KVER     ?= $(shell uname -r)
KDIR     ?= $(firstword $(wildcard $(KDIR_PLACES)) /lib/modules/$(KVER)/build)
CC       ?= gcc
AR       ?= ar

# Where a distribution may keep the headers of the running kernel.
KDIR_PLACES := /lib/modules/$(KVER)/build /usr/lib/modules/$(KVER)/build /usr/src/linux-headers-$(KVER) \
	       /usr/src/kernels/$(KVER)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(CURDIR)/%,%,$(2))';)

# The version's parts; the SONAME has the major number.
version_words := $(subst ., ,$(VERSION))
MAJOR := $(word 1,$(version_words))
SONAME := libpldk.so.$(MAJOR)

# Where the programs that are named by path are put.
BIN := $(if $(filter build,$(O)),.,$(O))

WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wshadow $(if $(WERROR),-Werror)
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CFLAGS ?= -O2 -g
# Library and tools may see kmod/wfg.h and kmod/cmp.h (what they share with the module); users see include/ only.
INCLUDES := -I$(O)/include -Iinclude -Iinclude/uapi
ALL_CFLAGS := -std=gnu11 $(WARN) -pthread -D_GNU_SOURCE $(INCLUDES) $(SAN_FLAGS) $(CFLAGS)
# No -fvisibility: lib/libpldk.map alone says what is exported, and the linker binds the rest directly; by
# -Bsymbolic-functions also the library's own calls of what it exports.
LIB_CFLAGS := -fPIC -fno-semantic-interposition -Ilib -Ikmod
LIB_LDFLAGS := -shared -Wl,-soname,$(SONAME) -Wl,--version-script=lib/libpldk.map -Wl,-Bsymbolic-functions \
	       $(if $(SAN),,-Wl,-z,defs) -Wl,-z,relro,-z,now

LIB_SRC := $(sort $(wildcard lib/*.c)) kmod/wfg.c
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o)
LIB_A := $(O)/libpldk.a
LIB_SO := $(O)/libpldk.so.$(VERSION)

# Programs link the static library: pldrun and pldctl read its hidden structures, and a program of the tree runs
# without a library path, in the VM too. What is no program is a part; in selftests/tutorial a part has a header.
TOOLS := $(patsubst tools/%.c,%,$(wildcard tools/pldrun.c tools/pldctl.c tools/pldbench.c))
TOOL_PARTS := $(filter-out $(TOOLS:%=tools/%.c),$(wildcard tools/*.c))
TUTORIAL_PARTS := $(wildcard $(patsubst %.h,%.c,$(wildcard selftests/tutorial/*.h)))
TUTORIALS := $(patsubst selftests/tutorial/%.c,%,$(filter-out $(TUTORIAL_PARTS),$(wildcard selftests/tutorial/*.c)))

PUBLIC_HEADERS := $(wildcard include/pldk/*.h)
MAN_PAGES := $(wildcard lib/man/*.[1-8])
man_dir = $(PREFIX)/share/man/man$(patsubst .%,%,$(suffix $(1)))

.PHONY: all lib tools tutorials modules maybe-modules run load unload vm bench peers bench-peers bench-vm install \
	uninstall clean help tests man FORCE
.DELETE_ON_ERROR:
.SUFFIXES:

all: lib tools tutorials maybe-modules

lib: $(LIB_A) $(LIB_SO)
tools: $(TOOLS:%=$(BIN)/tools/%)
tutorials: $(TUTORIALS:%=$(BIN)/selftests/tutorial/%)

help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

## make                          library, tools, tutorial programs; the module where kernel headers are found
## make run                      the digits job on 4 ranks; installs what is missing first
## make check                    every test; ends with "N passed, N failed, N skipped"
## make check-native|check-vm    the library and tools on this machine | module and library on /dev/pld in the VM
## make check-model|check-style|check-docs|check-install    the other parts of check
## make check-kernels|check-debug|check-kill|check-collectives|check-kselftest    not in check: three kernels | the
##                               debug kernel | 200 rounds of kills | every case | selftests/ in a kernel tree
## make run_tests                the tests on /dev/pld of this machine
## make modules KDIR=... [C=1] [W=1]   the module only
## make load | unload            insmod it | rmmod it (root)
## make vm                       a shell in a VM that has it loaded
## make bench                    latency and bandwidth of every operation, one JSON line each; build/bench/report.html
## make bench-peers              collectives against Open MPI and MPICH: PEERS=openmpi,mpich TIMEBOX=40 (minutes) FULL=1
## make bench-vm                 in the VM: provider dev against shm, and collectives on dev against Open MPI
## make install | uninstall [DESTDIR=...] [PREFIX=/usr/local] [DKMSDIR=/usr/src, or empty for no module sources]
## make clean
## variables: O=build V=1 SAN=address|undefined|thread KMOD=0 WERROR=1 CC= CFLAGS= KDIR= KVER=

# ----------------------------------------------------------------------
# Generated files

# Objects depend on this file, which changes only when the command line of the compiler does. That warnings are errors
# makes no other object, so it does not count.
command_line = $(filter-out -Werror,$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) $(LIB_LDFLAGS) $(VERSION))
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(command_line)' | cmp -s - $@ || printf '%s\n' '$(command_line)' >$@

subst_version = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@MAJOR@|$(MAJOR)|g' \
	-e 's|@MINOR@|$(word 2,$(version_words))|g' -e 's|@PATCH@|$(word 3,$(version_words))|g' \
	-e 's|@PREFIX@|$(PREFIX)|g'

VERSION_H := $(O)/include/pldk/version.h
$(VERSION_H): include/pldk/version.h.in Makefile
	@mkdir -p $(@D)
	$(Q)$(subst_version) $< >$@

# These two hold PREFIX as well, so they are made anew each time.
$(O)/libpldk.pc: lib/libpldk.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)$(subst_version) $< >$@

$(O)/dkms.conf: tools/packaging/dkms.conf.in FORCE
	@mkdir -p $(@D)
	$(Q)$(subst_version) $< >$@

# ----------------------------------------------------------------------
# Library, tools, tutorials

$(LIB_OBJ): $(O)/%.o: %.c $(VERSION_H) $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(LIB_A): $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(LIB_OBJ) lib/libpldk.map
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(LIB_LDFLAGS) $(LDFLAGS) $(LIB_OBJ) -o $@
	@ln -sf $(@F) $(O)/$(SONAME)
	@ln -sf $(SONAME) $(O)/libpldk.so

$(O)/tools/%.o: tools/%.c $(VERSION_H) $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -Ilib -Ikmod -MMD -MP -c $< -o $@

$(O)/selftests/tutorial/%.o: selftests/tutorial/%.c $(VERSION_H) $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(O)/tools/parts.a: $(TOOL_PARTS:%.c=$(O)/%.o)
$(O)/selftests/tutorial/parts.a: $(TUTORIAL_PARTS:%.c=$(O)/%.o)
%/parts.a:
	$(Q)rm -f $@ && $(AR) rcs $@ $^

PROGRAMS := $(TOOLS:%=tools/%) $(TUTORIALS:%=selftests/tutorial/%)
$(foreach p,$(PROGRAMS),$(eval $(BIN)/$(p): $(O)/$(p).o $(O)/$(dir $(p))parts.a $(LIB_A)))
$(TOOLS:%=$(BIN)/tools/%): LDLIBS := -ljansson
$(TUTORIALS:%=$(BIN)/selftests/tutorial/%): LDLIBS := -lz
$(PROGRAMS:%=$(BIN)/%):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lm -o $@

# The tests need the kernel's harness, which tools/vm/kselftest fetches; so plain `make` does without them.
tests: lib tools tutorials
	$(Q)$(MAKE) --no-print-directory -C selftests all OUTPUT=$(abspath $(O))/selftests PLDK_BUILD=$(abspath $(O)) \
		KSELFTEST_DIR="$$(tools/vm/kselftest)" $(if $(SAN),EXTRA_CFLAGS='$(SAN_FLAGS)')

-include $(LIB_OBJ:.o=.d) $(wildcard $(O)/tools/*.d $(O)/selftests/tutorial/*.d)

# ----------------------------------------------------------------------
# Module

KMAKE = $(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR) PLD_VERSION=$(VERSION) CONFIG_DEBUG_INFO_BTF_MODULES=
kdir_looked = $(if $(filter command environment,$(word 1,$(origin KDIR))),KDIR=$(KDIR),$(KDIR_PLACES))
no_headers = kernel headers not found: looked at $(kdir_looked); \
	install linux-headers-$(KVER) (Debian, Ubuntu) or kernel-devel-$(KVER) (Fedora, RHEL), or give KDIR=

modules:
	@test -e $(KDIR)/Makefile || { echo "make: $(strip $(no_headers))" >&2; exit 1; }
	$(Q)$(KMAKE) modules

maybe-modules:
ifneq ($(KMOD),0)
	@if test -e $(KDIR)/Makefile; then $(KMAKE) modules; else \
		echo "make: no module: $(strip $(no_headers))"; fi
endif

# On a machine with udev the rule kmod/60-pld.rules does the second half.
load:
	@test "$$(id -u)" = 0 || { echo "make: loading a module needs root: sudo make load" >&2; exit 1; }
	@test -e pld.ko || { echo "make: there is no pld.ko yet: run make modules first" >&2; exit 1; }
	insmod pld.ko
	@if getent group pld >/dev/null; then chgrp pld /dev/pld && chmod 0660 /dev/pld; fi
	@ls -l /dev/pld

unload:
	@test "$$(id -u)" = 0 || { echo "make: unloading a module needs root: sudo make unload" >&2; exit 1; }
	rmmod pld

# ----------------------------------------------------------------------
# Running and checking

run:
	@echo "pldk: four processes train one classifier of handwritten digits together."
	$(Q)tools/setup --quiet build
	$(Q)$(MAKE) --no-print-directory all KMOD=0
	$(Q)tools/fetch-digits
	@if test -w /dev/pld; then \
		echo "pldk: /dev/pld is there: the kernel module carries the windows and signals."; \
	else \
		echo "pldk: no /dev/pld here: the embedded provider does the same job and needs no privilege."; \
	fi
	@echo "pldk: rank 0 sends the first weights to all. Each rank learns from a quarter of the images; gradients are"
	@echo "pldk: summed after every step, so that all hold the same weights. Then plain C does it alone, to compare."
	$(Q)$(BIN)/tools/pldrun --no-prefix -n 4 $(BIN)/selftests/tutorial/train_digits

CHECKS := native vm model style docs install kernels debug kill collectives kselftest here
.PHONY: check $(CHECKS:%=check-%)
check:
	$(Q)tools/setup --quiet test
	$(Q)SAN=$(SAN) tools/check all

$(CHECKS:%=check-%): check-%:
	$(Q)tools/setup --quiet test
	$(Q)SAN=$(SAN) tools/check $*

run_tests: check-here
.PHONY: run_tests

vm:
	$(Q)tools/vm/shell

# stdout is for the results, of this and of bench-peers.
bench:
	$(Q)$(MAKE) --no-print-directory lib tools >&2
	@mkdir -p $(O)/bench
	$(Q)$(BIN)/tools/pldbench >$(O)/bench/pldbench.jsonl; code=$$?; cat $(O)/bench/pldbench.jsonl; \
		$(bench_report); exit $$code
bench_report = if command -v python3 >/dev/null; then tools/bench-report $(O)/bench; else \
	echo "make: no report: python3 is not there; tools/setup bench installs it" >&2; fi

# The same collectives over each MPI that is installed.
$(O)/peers/mpi_bench.%: tools/peers/mpi_bench.c tools/peers/touch.h
	@mkdir -p $(@D)
	$(call say,MPICC,$@)mpicc.$* -std=gnu11 -O2 $(WARN) $< -o $@

peers:
	@for mpi in openmpi mpich; do \
		command -v mpicc.$$mpi >/dev/null || { echo "make: no mpicc.$$mpi; tools/setup bench installs it"; continue; }; \
		$(MAKE) --no-print-directory $(O)/peers/mpi_bench.$$mpi || exit; done

PEERS ?= openmpi,mpich
TIMEBOX ?= 40
bench-peers:
	$(Q)$(MAKE) --no-print-directory lib tools peers >&2
	$(Q)tools/bench-peers --compare $(PEERS) --timebox $(TIMEBOX) $(if $(FULL),--full) --build $(O) \
		--pldbench $(BIN)/tools/pldbench
	$(Q)$(bench_report)

# /dev/pld is in the VM only; figures of an emulated CPU compare with each other and with nothing else.
bench-vm:
	$(Q)$(MAKE) --no-print-directory lib tools peers >&2
	$(Q)tools/vm/run --timeout 3600 -- sh -c 'tools/bench-providers && tools/bench-peers --compare openmpi \
		--provider dev --ranks 2 --bytes 8,4K,64K,1M --launches 5 --timebox 15 --state /tmp/peers.jsonl'

# ----------------------------------------------------------------------
# Installing. One list of SOURCE:DIRECTORY:NAME:MODE for both directions.

include_dir := $(PREFIX)/include
lib_dir := $(PREFIX)/lib
# dkms looks in /usr/src only, so PREFIX does not count. Who is not root installs the library for himself, without it.
DKMSDIR ?= $(if $(DESTDIR)$(filter 0,$(shell id -u)),/usr/src)
dkms_dir := $(addsuffix /pld-$(VERSION),$(DKMSDIR))
install_one = $(1):$(2):$(notdir $(1)):$(3)

INSTALL_LIST = \
	include/pldk.h:$(include_dir):pldk.h:644 \
	$(foreach h,$(PUBLIC_HEADERS) $(VERSION_H),$(call install_one,$(h),$(include_dir)/pldk,644)) \
	include/uapi/linux/pld.h:$(include_dir)/pldk/uapi:pld.h:644 \
	$(LIB_A):$(lib_dir):libpldk.a:644 \
	$(LIB_SO):$(lib_dir):$(notdir $(LIB_SO)):755 \
	$(O)/libpldk.pc:$(lib_dir)/pkgconfig:libpldk.pc:644 \
	$(foreach t,$(TOOLS),$(call install_one,$(BIN)/tools/$(t),$(PREFIX)/bin,755)) \
	$(foreach m,$(MAN_PAGES) $(wildcard $(O)/man/*),$(call install_one,$(m),$(call man_dir,$(m)),644)) \
	kmod/60-pld.rules:$(PREFIX)/lib/udev/rules.d:60-pld.rules:644 \
	$(if $(dkms_dir),$(DKMS_LIST))
DKMS_LIST = \
	$(O)/dkms.conf:$(dkms_dir):dkms.conf:644 \
	Kbuild:$(dkms_dir):Kbuild:644 LICENSE:$(dkms_dir):LICENSE:644 Makefile:$(dkms_dir):Makefile:644 \
	include/uapi/linux/pld.h:$(dkms_dir)/include/uapi/linux:pld.h:644 \
	$(foreach f,$(wildcard kmod/Kbuild kmod/*.[ch]),$(call install_one,$(f),$(dkms_dir)/kmod,644))
INSTALL_LINKS = $(lib_dir)/$(SONAME):$(notdir $(LIB_SO)) $(lib_dir)/libpldk.so:$(SONAME)

# One page per exported function: pages that name several get aliases.
man: lib/libpldk.map $(MAN_PAGES)
	@mkdir -p $(O)/man
	$(Q)tools/packaging/man-aliases $(O)/man

# Else programs do not find a library that is new in a folder of /etc/ld.so.conf. Only root may, so failure is no error.
run_ldconfig = test -n "$(DESTDIR)" || PATH="$$PATH:/usr/sbin:/sbin" ldconfig 2>/dev/null || :

# The list has the aliases only when they are there before make reads it, hence the second make.
install: all man $(O)/libpldk.pc $(O)/dkms.conf
	$(Q)$(MAKE) --no-print-directory install-files
.PHONY: install-files
install-files:
	$(Q)set -e; for i in $(INSTALL_LIST); do IFS=:; set -- $$i; unset IFS; \
		install -D -m "$$4" "$$1" "$(DESTDIR)$$2/$$3"; done
	$(Q)set -e; for i in $(INSTALL_LINKS); do ln -sf "$${i#*:}" "$(DESTDIR)$${i%%:*}"; done
	$(Q)$(run_ldconfig)

uninstall: man
	$(Q)$(MAKE) --no-print-directory uninstall-files
.PHONY: uninstall-files
uninstall-files:
	$(Q)for i in $(INSTALL_LIST); do IFS=:; set -- $$i; unset IFS; rm -f "$(DESTDIR)$$2/$$3"; done
	$(Q)for i in $(INSTALL_LINKS); do rm -f "$(DESTDIR)$${i%%:*}"; done
	$(Q)for d in $(include_dir)/pldk/uapi $(include_dir)/pldk \
		$(if $(dkms_dir),$(addprefix $(dkms_dir),/include/uapi/linux /include/uapi /include /kmod /)); do \
		rmdir "$(DESTDIR)$$d" 2>/dev/null || :; done
	$(Q)$(run_ldconfig)

clean:
	$(Q)rm -rf $(O)
	$(Q)rm -f $(TOOLS:%=$(BIN)/tools/%) $(TUTORIALS:%=$(BIN)/selftests/tutorial/%)
	$(Q)rm -f pld.ko pld.o pld.mod pld.mod.c pld.mod.o .pld.* .modules.order.cmd .Module.symvers.cmd modules.order \
		Module.symvers kmod/*.o kmod/.*.cmd kmod/.*.d

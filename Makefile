# SPDX-License-Identifier: BSD-3-Clause
# Builds Olympus outside the source tree. One file, no recursion; `make help` lists what it can do.
# Sources are found by wildcard: a new .c file in a folder below is built, linked and tested without a change here.

.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# -- settings: make NAME=VALUE ------------------------------------------------------------------------------------------
#: MPICC=mpicc.mpich     the MPI compiler, and with it the MPI library (default mpicc)
#: CC=clang              the compiler under it (default: the one MPICC was made for)
#: DEBUG=1               no optimisation, full debug information
#: SANITIZE=address      address, undefined, thread, or a list with commas
#: CFLAGS=... LDFLAGS=...    added to ours
#: HDF5=0                without HDF5, also where it is installed
#: BUILD=folder          where to build (default build, or build-debug, build-address, build-mpich... by the above)
#: TESTS="mesh scan"     make test: only these; CHECK_TIMEOUT=120: seconds allowed for one run
#: BENCH="..."           make bench: arguments of the bench program
#: PREFIX=/usr/local     make install: where to; DESTDIR=... is put in front
#: CUDA_HOME=folder      CUDA's headers and nvcc (default /usr/local/cuda, or where nvcc is)
#: CUDA=0                without GPUs, also where nvcc is
#: CUDA_ARCHS="80 90"    for these GPUs, and later ones by PTX (default 70 75 80 86 89 90 100 120, as far as nvcc knows them)
#: V=1                   show whole commands
MPICC  ?= mpicc
MPIRUN ?= $(subst mpicc,mpirun,$(MPICC))
PREFIX ?= /usr/local
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda) $(patsubst %/bin/nvcc,%,$(shell command -v nvcc)) /usr/local/cuda)
comma  := ,
empty  :=
mpi    := $(patsubst mpicc%,%,$(notdir $(MPICC)))
BUILD  ?= build$(subst .,-,$(mpi))$(if $(DEBUG),-debug)$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
Q      := $(if $(V),,@)
say     = @$(if $(V),:,printf '  %-7s %s\n' $1 $2)

# The wrapper adds MPI to whatever compiler it finds in these variables (Open MPI, MPICH).
ifeq ($(filter default undefined,$(origin CC)),)
export OMPI_CC  := $(CC)
export MPICH_CC := $(CC)
endif

# -- sources ------------------------------------------------------------------------------------------------------------
# In folders of any depth.
files         = $(sort $(shell find $1 -name '$2' ! -path '*/.*'))
cpu_kernels  := $(call files,kernels/cpu,*.c)
guards       := $(call files,launch/guard,*.c)
tools        := $(call files,launch/oly,*.c)
meets        := $(call files,launch/meet,*.c)
awares       := $(call files,launch/aware,*.c)
sources      := $(filter-out $(cpu_kernels) $(guards) $(tools) $(meets) $(awares),$(call files,runtime collectives launch kernels,*.c))
examples     := $(call files,examples,*.c)
bench        := $(filter-out bench/peers/%,$(call files,bench,*.c))
oracle       := $(call files,tests/oracle_runner,*.c)
tests        := $(call files,tests,test_*.c)
long_runs    := $(call files,tests/long,*.c)
fuzzers      := $(call files,tests/fuzz,fuzz_*.c)
soak         := $(call files,tests/soak,*.c)
soak_fuzzer  := tests/soak/fuzz_programs.c
everywhere   := $(call files,tests/operations/reference,*.c)
test_helpers := $(call files,tests/support,*.c)
headers      := $(call files,include runtime collectives launch kernels examples bench tests,*.h)
every_source := $(sources) $(guards) $(tools) $(meets) $(awares) $(cpu_kernels) $(examples) $(bench) $(oracle) $(tests) $(everywhere) $(long_runs) $(test_helpers) $(fuzzers) $(soak) \
                tests/fuzz/driver.c

# The programs of tests are beside each other, wherever their sources are.
test_program  = $(addprefix $(BUILD)/tests/,$(basename $(notdir $1)))
programs := $(examples:%.c=$(BUILD)/%) $(if $(bench),$(BUILD)/bench/bench) $(call test_program,$(tests)) \
            $(if $(oracle),$(BUILD)/tests/oracle) $(if $(soak),$(BUILD)/tests/soak/soak)
protected := $(filter-out %_mpi,$(examples:examples/%.c=$(BUILD)/tests/protected/%))
guard    := $(BUILD)/launch/olyguard
tool     := $(BUILD)/launch/oly/oly
meet     := $(BUILD)/launch/olymeet
aware    := $(BUILD)/launch/olyaware
library  := $(BUILD)/libolympus.a
shared   := $(BUILD)/libolympus.so

version  := $(shell awk '/define OLY_VERSION_M/ { printf "%s%s", dot, $$3; dot = "." }' include/olympus/base.h)

# -- what the machine has -----------------------------------------------------------------------------------------------
# packages.mk holds the answers of pkg-config and the compiler. Being included, it is made before anything else, and make
# then starts anew with it. `make test` and `make demo` install what is missing; other goals only say what to do.
packages  := hwloc openblas libpng zlib libcrypto
installer := $(wildcard launch/install-dependencies)
# HDF5 may be missing. One for the MPI of MPICC is preferred, by the name that Debian gives its pkg-config file.
find_hdf5 = hdf5=; for each in $$(case "$$($(MPICC) -show)" in *mpich*) echo hdf5-mpich ;; *) echo hdf5-openmpi ;; esac) hdf5-serial hdf5; do \
            test -n "$$hdf5" || ! pkg-config --exists $$each 2>/dev/null || hdf5=$$each; done
ifneq ($(filter-out clean help layers,$(or $(MAKECMDGOALS),all)),)
include $(BUILD)/packages.mk
endif
ifeq ($(HDF5),0)
hdf5_file :=
endif
with_hdf5 := %/hdf5_late.c %/hdf5_file.c %/hdf5_types.c %/hdf5_attribute.c %/hdf5_place.c
sources   := $(filter-out $(if $(hdf5_file),%/hdf5_none.c,$(with_hdf5)),$(sources))
$(BUILD)/runtime/file/hdf5_%.o: CFLAGS += $(hdf5_cflags) -DOLY_HDF5_FILE='"$(hdf5_file)"' -DOLY_HDF5_PATH='"$(hdf5_path)"'
# GPUs: the platform, its executor and the kernels (kernels/cuda), compiled by nvcc and embedded. Nothing of CUDA is linked.
CUDA       ?= 1
nvcc       := $(CUDA_HOME)/bin/nvcc
has_cuda   := $(if $(filter 0,$(CUDA)),,$(and $(wildcard $(nvcc)),$(wildcard $(CUDA_HOME)/include/cuda.h)))
gpu_rooms  := runtime/device/cuda runtime/run/cuda
sources    := $(filter-out $(if $(has_cuda),$(gpu_rooms:%=%/none.c),$(filter-out %/none.c,$(wildcard $(gpu_rooms:%=%/*.c)))),$(sources))
sources    := $(filter-out $(if $(wildcard kernels/cuda/launch.h),,runtime/run/cuda/steps.c runtime/run/cuda/launcher.c),$(sources))
cuda_archs  = $(or $(subst sm_,,$(CUDA_ARCHS)),$(filter 70 75 80 86 89 90 100 120,$(nvcc_knows)))
$(gpu_rooms:%=$(BUILD)/%/%.o): inside += -isystem $(CUDA_HOME)/include
$(BUILD)/packages.mk: $(installer) $(firstword $(MAKEFILE_LIST))
	@mkdir -p $(@D)
	$(if $(installer),$(Q)$(installer) $(if $(filter test check demo,$(MAKECMDGOALS)),,--check))
	@pkg-config --exists --print-errors $(packages) cmocka
	@$(find_hdf5); test -n "$$hdf5" || echo 'HDF5: not found (libhdf5-openmpi-dev, libhdf5-mpich-dev): built without it'
	@$(if $(has_cuda),:,echo 'CUDA: $(if $(filter 0,$(CUDA)),left out (CUDA=0),no nvcc and cuda.h in $(CUDA_HOME)): built without GPUs')
	@command -v $(MPICC) >/dev/null || { echo "$(MPICC): not found (MPICC= names the MPI compiler)" >&2; exit 1; }
	@$(find_hdf5); { echo "hdf5_cflags := $${hdf5:+$$(pkg-config --cflags $$hdf5)}"; \
	   hdf5=$${hdf5:+$$(for folder in $$(pkg-config --libs-only-L $$hdf5 | sed 's/-L//g') $$(pkg-config --variable=libdir $$hdf5); do \
	                      realpath -e $$folder/libhdf5.so 2>/dev/null; done; $(MPICC) -print-file-name=libhdf5.so)}; hdf5=$$(echo $$hdf5 | cut -d' ' -f1); \
	   echo "hdf5_path   := $$hdf5"; \
	   echo "hdf5_file   := $${hdf5:+$$(objdump -p "$$hdf5" | awk '/SONAME/ { print $$2 }')}"; \
	   echo "package_cflags := $$(pkg-config --cflags $(packages))"; \
	   echo "package_libs   := $$(pkg-config --libs $(filter-out zlib libcrypto,$(packages)))"; \
	   echo "crypto_cflags  := $$(pkg-config --cflags libcrypto)"; \
	   echo "crypto_libs    := $$(pkg-config --libs libcrypto)"; \
	   echo "zlib_libs      := $$(pkg-config --libs zlib)"; \
	   echo "pmix_cflags    := $$(pkg-config --cflags pmix 2>/dev/null)"; \
	   echo "pmix_libs      := $$(pkg-config --libs pmix 2>/dev/null)"; \
	   echo "cmocka_cflags  := $$(pkg-config --cflags cmocka)"; \
	   echo "cmocka_libs    := $$(pkg-config --libs cmocka)"; \
	   echo "nvcc_packs     := $(if $(has_cuda),$$($(nvcc) --help 2>/dev/null | grep -q -e --compress-mode && echo --compress-mode=size))"; \
	   echo "nvcc_knows     := $(if $(has_cuda),$$($(nvcc) --list-gpu-arch 2>/dev/null | sed 's/compute_//' | tr '\n' ' '))"; \
	   echo "mpi_cflags     := $$($(MPICC) -show | tr ' ' '\n' | grep '^-I' | tr '\n' ' ')"; \
	   echo "mpi_libs       := $$($(MPICC) -show | tr ' ' '\n' | grep -E '^-(L|l|Wl,)' | tr '\n' ' ')"; \
	   echo "machine        := $$($(MPICC) -dumpmachine)"; } > $@

# -- flags --------------------------------------------------------------------------------------------------------------
# Instruction sets the CPU kernels are compiled for; the best this CPU has is chosen at start (kernels/).
isas         := base $(if $(filter x86_64-%,$(machine)),avx2 avx512)
march.base   :=
march.avx2   := -march=haswell
march.avx512 := -march=skylake-avx512 -mprefer-vector-width=512

warnings  := -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror
optimise  := $(if $(DEBUG),-Og -g3,-O2 -g)
sanitize  := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all $(if $(findstring thread,$(SANITIZE)),-Wno-tsan))
compile    = $(MPICC) -std=gnu11 $(optimise) $(warnings) -fPIC -fvisibility=hidden -pthread $(sanitize) -MMD -MP
inside     = -Iinclude -Iruntime -Ikernels -Icollectives -Ilaunch $(package_cflags)
# In the library itself public functions are no macros: calls among its own functions note no places.
of_library = -DOLYMPUS_LIBRARY
# Kernels give the same bits on every instruction set, so no contraction but the fma() they write; they read neither errno
# nor the exception flags. Of debug information they have functions and lines only: with variables, each program would have 35 MB more.
kernel     = $(if $(DEBUG),,-O3 -g1) -ffp-contract=off -fno-math-errno -fno-trapping-math
link       = $(MPICC) -pthread $(sanitize)
libs       = $(package_libs) -lm -lpthread -ldl

gpu_kernels := $(if $(has_cuda),$(wildcard kernels/cuda/*.cu))
embedded    := $(if $(has_cuda),$(BUILD)/kernels/cuda/embedded.o)
objects := $(sources:%.c=$(BUILD)/%.o) $(embedded) $(foreach isa,$(isas),$(cpu_kernels:%.c=$(BUILD)/%.$(isa).o))

# Two notes that change when flags or the list of sources do; what depends on them is then made again.
ifdef machine
ifneq ($(strip $(compile) $(inside) $(kernel) $(CFLAGS)),$(file < $(BUILD)/flags))
$(file > $(BUILD)/flags,$(strip $(compile) $(inside) $(kernel) $(CFLAGS)))
endif
ifneq ($(strip $(cuda_archs)),$(file < $(BUILD)/cuda_flags))
$(file > $(BUILD)/cuda_flags,$(strip $(cuda_archs)))
endif
ifneq ($(strip $(objects) $(link) $(libs) $(LDFLAGS)),$(file < $(BUILD)/contents))
$(file > $(BUILD)/contents,$(strip $(objects) $(link) $(libs) $(LDFLAGS)))
endif
endif

# -- goals --------------------------------------------------------------------------------------------------------------
.PHONY: cuda-report emulator gpu-bundle all library examples demo test check long fuzz fuzzers soak campaign divergence soak-fuzzer coverage bench lint tidy layers tags install uninstall mutants clean help

all: library $(programs) $(protected) $(guard) $(meet) $(aware) $(tool) emulator $(if $(wildcard $(CUDA_HOME)/include/cuda.h),$(BUILD)/tests/gpu/rates) ## the library, the examples, the tests and the bench (default)

library: $(library) $(shared) $(shared)-gdb.py $(meet) $(aware) ## libolympus.a and libolympus.so

examples: $(examples:%.c=$(BUILD)/%) ## the example programs

test check: all ## everything, then all tests; the last line counts them
	@BUILD=$(BUILD) MPIRUN=$(MPIRUN) tests/run.sh $(TESTS)

long: $(long_runs:%.c=$(BUILD)/%) ## builds the long runs (tests/long, minutes each); start them by hand

fuzz: ## builds the fuzzers of the notations with sanitizers and runs each; SECONDS=10 each
	@$(MAKE) --no-print-directory SANITIZE=address,undefined fuzzers
	@for program in $(basename $(notdir $(fuzzers))); do printf '%s: ' $$program; \
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=abort_on_error=1 \
		build-address-undefined/tests/fuzz/$$program $(or $(SECONDS),10) $(SEED) || exit; done

soak: $(BUILD)/tests/soak/soak ## random programs against plain loops, on all layouts in turn; SECONDS=60, SEED=n
	@MPIRUN=$(MPIRUN) BUILD=$(BUILD) SOAK_KEEP=tests/soak/corpus tests/soak/run.sh $(or $(SECONDS),60) $(SEED)

campaign: $(BUILD)/tests/soak/soak ## given numbers of random programs; PARTS="1x8:25000:30000000 2x4:..." (layout:programs:first seed)
	@MPIRUN=$(MPIRUN) BUILD=$(BUILD) tests/soak/campaign.sh $(PARTS)

divergence: $(BUILD)/tests/test_divergence $(BUILD)/tests/test_divergence_parts $(BUILD)/tests/test_divergence_calls ## every program in which one rank differs; LAYOUTS="4x2 8x4" (2, 4, 8 ranks x 1 to 4 devices); on an idle machine
	@MPIRUN=$(MPIRUN) BUILD=$(BUILD) tests/ranks/divergence.sh $(LAYOUTS)

soak-jax: $(BUILD)/tests/soak/soak ## asks JAX 0.10.2, which it installs in the build folder, for the operations of COUNT=100 random programs
	@test -x $(BUILD)/jax/bin/python || python3 -m venv $(BUILD)/jax
	@$(BUILD)/jax/bin/pip install --quiet jax==0.10.2
	@OLYMPUS_NUM_CPU_DEVICES=8 $(BUILD)/tests/soak/soak -j $(or $(SEED),1) $(or $(COUNT),100) | $(BUILD)/jax/bin/python tests/soak/against_jax.py

coverage: ## lines of the planner that random programs alone reach (SECONDS=120 of soak in a build with --coverage), and those they do not
	@$(MAKE) --no-print-directory BUILD=build-coverage COVERAGE=1 build-coverage/tests/soak/soak
	@find build-coverage -name '*.gcda' -delete
	@MPIRUN=$(MPIRUN) BUILD=build-coverage SOAK_SHRINK=0 SOAK_COUNT=$${SOAK_COUNT:-300} \
		SOAK_LAYOUTS="$${SOAK_LAYOUTS:-1x8 2x4 4x6 8x1 1x24 2x8 1x1 5x1}" tests/soak/run.sh $(or $(SECONDS),120) $(SEED) | tail -n 9
	@tests/soak/coverage.sh build-coverage

soak-fuzzer: ## the same programs from libFuzzer's bytes (needs clang): runs SECONDS=60; build-fuzzer/corpus keeps what reached more of the planner
	@$(MAKE) --no-print-directory BUILD=build-fuzzer FUZZER=1 build-fuzzer/tests/soak/fuzz_programs
	@mkdir -p build-fuzzer/corpus
	@OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OLYMPUS_NUM_CPU_DEVICES=8 build-fuzzer/tests/soak/fuzz_programs \
		-max_total_time=$(or $(SECONDS),60) -timeout=20 -rss_limit_mb=4096 -max_len=3000 -len_control=0 \
		-artifact_prefix=build-fuzzer/ build-fuzzer/corpus tests/soak/corpus

fuzzers: $(fuzzers:%.c=$(BUILD)/%)

mutants: all ## plants COUNT=300 mutants, SEED=1, in the planner, graphs, transforms and kernels, and runs the tests against them
	@mkdir -p build-mutants/$(or $(SEED),1)
	@CFLAGS="$(filter -D% -I%,$(inside) $(of_library))" tests/mutants/plant.py build-mutants/$(or $(SEED),1) $(or $(SEED),1) $(or $(COUNT),300)
	@tests/mutants/run.py build-mutants/$(or $(SEED),1) $(BUILD) $(or $(SECONDS),60)

bench: $(BUILD)/bench/bench ## the bench program, and runs it
	$(Q)MPIRUN=$(MPIRUN) $< $(BENCH)

clean: ## removes the build folder
	rm -rf $(BUILD)

help: ## this list
	@echo 'make GOAL... [NAME=VALUE...]'
	@sed -n 's/^\([a-z][a-z ]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "  %-12s %s\n", $$1, $$2 }'
	@echo 'settings'
	@sed -n 's/^#: /  /p' $(firstword $(MAKEFILE_LIST))

# -- compiling ----------------------------------------------------------------------------------------------------------
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) $(inside) $(of_library) $(CFLAGS) -c $< -o $@

ifdef COVERAGE
$(BUILD)/runtime/plan/%.o: CFLAGS += --coverage
LDFLAGS += --coverage
endif

# The planner tells the fuzzer where it has been; the rest is as in any build.
ifdef FUZZER
with_clang := OMPI_CC=clang MPICH_CC=clang
$(BUILD)/runtime/plan/%.o: compile := $(with_clang) $(compile) -fsanitize=fuzzer-no-link -Wno-unknown-pragmas
endif

# Examples see what users see.
$(BUILD)/examples/%.o: examples/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) -Iinclude $(CFLAGS) -c $< -o $@

$(BUILD)/tests/%.o: inside += -Itests/support -Itests/operations/reference
$(BUILD)/tests/%.o: tests/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) $(inside) $(cmocka_cflags) $(CFLAGS) -c $< -o $@

# A caller of every public function, made of the declarations in the headers.
every_call := $(BUILD)/tests/every_call.h
$(every_call): tests/operations/make-every-call $(wildcard include/olympus/*.h)
	@mkdir -p $(@D)
	$(Q)$< $(filter %.h,$^) > $@
$(BUILD)/tests/operations/test_every_call.o: $(every_call)
$(BUILD)/tests/operations/test_every_call.o: CFLAGS += -I$(BUILD)/tests

# gcc 12 fuses the products of complex numbers that it vectorises by itself, although contraction is off.
not_fused := $(foreach isa,$(isas),$(BUILD)/kernels/cpu/scan.$(isa).o $(BUILD)/kernels/cpu/scatter.$(isa).o)
$(not_fused): kernel += -fno-tree-slp-vectorize

define kernels_for
$(BUILD)/kernels/cpu/%.$1.o: kernels/cpu/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,"$$< ($1)")
	$(Q)$$(compile) $$(inside) $$(of_library) $$(kernel) $(march.$1) -DOLY_ISA=$1 $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(isas),$(eval $(call kernels_for,$(isa))))

# One call of nvcc for all architectures of a file, which it compiles at the same time. Contraction only where it is written.
# The first architecture's PTX becomes the code of all of them, and the PTX that later GPUs compile for themselves.
nvcc_flags = -std=c++17 -O3 -fmad=false -Ikernels -Ikernels/cuda -Iruntime -Iinclude -Werror all-warnings --threads 2 $(or $(nvcc_packs),-Xfatbin -compress-all) \
             $(foreach a,$(cuda_archs),-gencode arch=compute_$(firstword $(cuda_archs))$(comma)code=sm_$a) \
             -gencode arch=compute_$(firstword $(cuda_archs)),code=compute_$(firstword $(cuda_archs))
$(BUILD)/kernels/cuda/%.fatbin: kernels/cuda/%.cu kernels/cuda/compile kernels/cuda/report $(BUILD)/cuda_flags
	@mkdir -p $(@D)
	$(call say,NVCC,"$< ($(cuda_archs))")
	$(Q)kernels/cuda/compile $(nvcc) $< $@ $(nvcc_flags)
-include $(gpu_kernels:%.cu=$(BUILD)/%.fatbin.d)

# Images of the kernels, and the headers that generated ones include, as data.
gpu_headers := $(addprefix kernels/cuda/,element.h complex.h formulas.h device.h row_units.h) $(wildcard kernels/cpu/math_*.h) kernels/cpu/vector_math.h runtime/core/narrow.h
$(BUILD)/kernels/cuda/embedded.c: kernels/cuda/embed $(gpu_kernels:%.cu=$(BUILD)/%.fatbin) $(gpu_headers) $(BUILD)/contents
	@mkdir -p $(@D)
	$(Q)kernels/cuda/embed $(gpu_kernels:%.cu=$(BUILD)/%.fatbin) $(gpu_headers) > $@
$(BUILD)/kernels/cuda/embedded.o: $(BUILD)/kernels/cuda/embedded.c $(BUILD)/flags
	$(call say,CC,kernels/cuda/embedded.c)
	$(Q)$(compile) $(inside) $(CFLAGS) -c $< -o $@

cuda-report: $(gpu_kernels:%.cu=$(BUILD)/%.fatbin) ## registers, shared memory and spills of every kernel for every GPU
	@cat $(^:%=%.report)

# -- linking ------------------------------------------------------------------------------------------------------------
$(library): $(objects) $(BUILD)/contents
	$(call say,AR,$(@F))
	$(Q)rm -f $@ && $(AR) rcs $@ $(objects)

$(shared): $(objects) $(BUILD)/contents
	$(call say,LD,$(@F))
	$(Q)$(link) -shared -Wl,-soname,libolympus.so.0 $(if $(SANITIZE),,-Wl$(comma)--no-undefined) $(LDFLAGS) $(objects) $(libs) -o $@
	$(Q)ln -sf $(@F) $@.0

# gdb loads it with the shared library.
$(shared)-gdb.py: runtime/olympus-gdb.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

link_program = $(Q)$(link) $(LDFLAGS) $(filter %.o,$^) $(library) $(libs)

$(examples:%.c=$(BUILD)/%) $(long_runs:%.c=$(BUILD)/%): %: %.o $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) -o $@

# Examples on the platform of tests/support/platform_protected.c and the transport of transport_shuffled.c.
protected_platform := $(addprefix $(BUILD)/tests/support/,platform_protected.o late_streams.o transport_shuffled.o)
$(protected): $(BUILD)/tests/protected/%: $(BUILD)/examples/%.o $(protected_platform) $(library)
	@mkdir -p $(@D)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) -o $@

# The parts of the tool that read files.
tool_readers := $(addprefix $(BUILD)/launch/oly/,recorder_read.o verdict.o trace_summary.o files.o)
$(BUILD)/tests/fuzz/fuzz_recorder: $(tool_readers)
$(BUILD)/tests/fuzz/fuzz_recorder.o: inside += -Ilaunch/oly

$(fuzzers:%.c=$(BUILD)/%): %: %.o $(BUILD)/tests/fuzz/driver.o $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) -o $@

$(BUILD)/tests/soak/soak: $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(soak_fuzzer),$(soak)) tests/support/check_element.c tests/support/check_races.c tests/support/platform_protected.c tests/support/late_streams.c) $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) -o $@

$(BUILD)/tests/soak/fuzz_programs: $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/soak/main.c,$(soak)) tests/support/check_element.c tests/support/check_races.c tests/support/platform_protected.c tests/support/late_streams.c) $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(with_clang) $(link) $(LDFLAGS) $(filter %.o,$^) $(library) $(libs) -fsanitize=fuzzer -o $@

$(BUILD)/bench/bench: $(bench:%.c=$(BUILD)/%.o) $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) -o $@

# Without MPI: it runs beside the launcher.
$(guards:%.c=$(BUILD)/%.o): compile += -DOLYRUN_VERSION='"olyrun (Olympus) $(version)"'
$(guard): $(guards:%.c=$(BUILD)/%.o)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(link) $(LDFLAGS) -Wl,--as-needed $^ -o $@

# Without MPI, too: it serves the start of MPI. Without the PMIx library (Open MPI's), by host_none.c, it can do so for MPICH only.
meet_parts := $(filter-out launch/meet/host_$(if $(pmix_libs),none,pmix).c,$(meets)) launch/wire.c launch/guard/job_files.c
$(meets:%.c=$(BUILD)/%.o): inside = -Ilaunch $(crypto_cflags) $(pmix_cflags)
$(meet): $(meet_parts:%.c=$(BUILD)/%.o)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(link) $(LDFLAGS) -Wl,--as-needed $^ $(crypto_libs) $(pmix_libs) -lpthread -o $@

# With MPI: it tries whether that takes memory of GPUs.
$(aware): $(awares:%.c=$(BUILD)/%.o)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(link) $(LDFLAGS) $^ -ldl -o $@

# Programs linked with the static library may be anywhere: these programs are then looked for where the library was built, too.
$(BUILD)/launch/own_program.o: of_library += -DOLY_BUILD_FOLDER='"$(abspath $(BUILD))"'

# The tool, with what it needs of the library. page.html becomes part of it.
$(tools:%.c=$(BUILD)/%.o): compile += -Ilaunch/oly
$(BUILD)/launch/oly/page.o: launch/oly/page.html
$(tool): $(tools:%.c=$(BUILD)/%.o) $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) $(zlib_libs) -o $@

# Calls of these functions from one file to another pass these tests, which count them (tests/support/count_work.h).
counted := oly_split_cut oly_split_part_of oly_split_part_at oly_layout_box oly_region_box oly_box_intersect oly_box_count oly_box_contains \
    oly_box_equal oly_mesh_coordinates oly_mesh_position oly_mesh_process_of oly_malloc oly_calloc oly_arena_take
$(BUILD)/tests/test_growth $(BUILD)/tests/test_growth_sums $(BUILD)/tests/test_simulate $(BUILD)/tests/test_simulate_movements $(BUILD)/tests/test_simulate_reductions: LDFLAGS += $(counted:%=-Wl,--wrap=%)
$(BUILD)/tests/test_ops_everywhere $(BUILD)/tests/test_pairs: $(everywhere:%.c=$(BUILD)/%.o)
define test_of
$(call test_program,$1): $(1:%.c=$(BUILD)/%.o) $(test_helpers:%.c=$(BUILD)/%.o) $(library)
	$$(call say,LD,$$(@:$(BUILD)/%=%))
	$$(link_program) $$(cmocka_libs) -o $$@
endef
$(foreach test,$(tests),$(eval $(call test_of,$(test))))

$(BUILD)/tests/oracle: $(oracle:%.c=$(BUILD)/%.o) $(test_helpers:%.c=$(BUILD)/%.o) $(library)
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(link_program) $(cmocka_libs) -o $@

-include $(patsubst %.o,%.d,$(objects)) $(guards:%.c=$(BUILD)/%.d) $(tools:%.c=$(BUILD)/%.d) $(meets:%.c=$(BUILD)/%.d) $(awares:%.c=$(BUILD)/%.d) $(BUILD)/tests/gpu/rates.d $(patsubst %.c,$(BUILD)/%.d,$(filter-out $(sources) $(cpu_kernels) $(guards) $(tools) $(meets) $(awares),$(every_source)))

# -- the emulated GPU -----------------------------------------------------------------------------------------------------
# Libraries with the names of the driver, NVRTC, cuBLASLt and NCCL, and all kernels compiled for the host: once as they are, once with
# every access to memory told to the check for races (tests/gpu/README.md). They need CUDA's headers only.
emulated     := $(BUILD)/tests/gpu/emulated
emulated_at  := tests/gpu/emulator
cu_kernels   := $(call files,kernels/cuda,*.cu) $(emulated_at)/toy.cu
cuda_headers := $(wildcard $(CUDA_HOME)/include/cuda.h)
emulator     := $(if $(cuda_headers),$(addprefix $(emulated)/,libcuda.so.1 libnvrtc.so.13 real_nvrtc libcublasLt.so.13 $(if $(wildcard $(CUDA_HOME)/include/nccl.h),libnccl.so.2) libmpi_device.so include libkernels_emulated.so libkernels_checked.so))
sanitize_emulated = $(if $(findstring thread,$(SANITIZE)),,$(sanitize))
compile_emulated  = $(or $(OMPI_CC),gcc) -std=gnu11 $(optimise) $(warnings) -Wno-format-truncation -fPIC -fvisibility=hidden -pthread $(sanitize_emulated) -isystem $(CUDA_HOME)/include
# fma() is a call of a slow function where the compiler may not use the instruction: a quarter of the time of products.
emulated_fma     := $(if $(filter x86_64-%,$(machine)),$(shell grep -qsw fma /proc/cpuinfo && echo -mfma))
compile_kernels   = $(or $(CXX_EMULATED),g++) -x c++ -std=gnu++17 -O1 $(emulated_fma) -g -Wall -Wextra -Werror -ffp-contract=off -fno-exceptions -fno-rtti -fPIC \
                    -fvisibility=hidden -DOLY_EMULATED -I$(emulated_at) -Ikernels/cuda -Ikernels -Iruntime -Iinclude -MMD -MP -MT $@
link_emulated     = -shared -Wl,-soname,$(@F) -L$(emulated) -Wl,-rpath,'$$ORIGIN' -Wl,-z,defs -o $@
emulated_driver   := $(addprefix $(emulated_at)/,driver.c driver_memory.c driver_streams.c streams.c work.c memory.c graphs.c faults.c order.c)

emulator: $(emulator) ## the emulated GPU, on which tests/gpu/emulated COMMAND... runs programs

$(BUILD)/tests/gpu/%.o: inside += -I$(emulated_at) -isystem $(CUDA_HOME)/include
$(BUILD)/tests/test_emulator $(BUILD)/tests/test_emulator_rules $(BUILD)/tests/test_nccl: $(emulator)
$(BUILD)/tests/test_nccl: libs += $(if $(wildcard $(CUDA_HOME)/include/nccl.h),-Wl$(comma)--no-as-needed -L$(emulated) -l:libnccl.so.2)
$(BUILD)/tests/test_emulator $(BUILD)/tests/test_emulator_rules $(BUILD)/tests/test_nccl $(BUILD)/tests/test_gpu_user: libs += $(if $(cuda_headers),-L$(emulated) -l:libcuda.so.1 -l:libnvrtc.so.13 -l:libcublasLt.so.13 -lemulated_device -Wl$(comma)-rpath$(comma)$(abspath $(emulated)))
$(filter $(BUILD)/tests/test_gpu_%,$(call test_program,$(tests))): $(emulator)

$(emulated)/libemulated_device.so: $(addprefix $(emulated_at)/,launch.c fibre.c races.c launch.h fibre.h)
	@mkdir -p $(@D)
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $(filter %.c,$^) $(link_emulated)

$(emulated)/libcuda.so.1: $(emulated_driver) $(emulated_at)/driver.h $(emulated)/libemulated_device.so
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $(filter %.c,$^) -lemulated_device -ldl $(link_emulated)

$(emulated)/libnvrtc.so.13: $(emulated_at)/nvrtc.c $(emulated)/libcuda.so.1
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $< -l:libcuda.so.1 -lemulated_device -ldl $(link_emulated)

$(emulated)/real_nvrtc: $(emulated_at)/real_nvrtc.c
	@mkdir -p $(@D)
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $< -ldl -o $@

$(emulated)/libcublasLt.so.13: $(emulated_at)/cublaslt.c $(emulated)/libcuda.so.1
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $< -l:libcuda.so.1 -lemulated_device -lm -ldl $(link_emulated)

$(emulated)/libnccl.so.2: $(emulated_at)/nccl.c $(emulated)/libcuda.so.1
	$(call say,LD,$(@F))
	$(Q)$(compile_emulated) $< -l:libcuda.so.1 -lemulated_device $(link_emulated)

$(emulated)/libmpi_device.so: $(emulated_at)/mpi_device.c $(emulated)/libcuda.so.1
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(MPICC) -std=gnu11 $(optimise) $(warnings) -fPIC -fvisibility=hidden $(sanitize_emulated) -isystem $(CUDA_HOME)/include $< -l:libcuda.so.1 -ldl $(link_emulated)

$(emulated)/include: $(addprefix $(emulated_at)/,emulated_device.h launch.h)
	@mkdir -p $@ && cp $^ $@ && touch $@

$(emulated)/kernels/%.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(compile_kernels) $(sanitize_emulated) -c $< -o $@
	$(Q)$(compile_kernels) -fsanitize=thread -c $< -o $(@:.o=.checked)

$(emulated)/libkernels_emulated.so: $(cu_kernels:%.cu=$(emulated)/kernels/%.o) $(emulated)/libemulated_device.so
	$(call say,LD,$(@F))
	$(Q)$(or $(CXX_EMULATED),g++) $(sanitize_emulated) $(filter %.o,$^) -lemulated_device -lm $(link_emulated)

$(emulated)/libkernels_checked.so: $(cu_kernels:%.cu=$(emulated)/kernels/%.o) $(emulated)/libemulated_device.so
	$(call say,LD,$(@F))
	$(Q)$(or $(CXX_EMULATED),g++) $(patsubst %.o,%.checked,$(filter %.o,$^)) -lemulated_device -lm $(link_emulated)

-include $(cu_kernels:%.cu=$(emulated)/kernels/%.d)

# What a card can do by itself, and all that a machine with a GPU needs for tests/gpu/run.sh, in one archive.
gpu_rates := $(if $(cuda_headers),$(BUILD)/tests/gpu/rates)
$(BUILD)/tests/gpu/rates: $(BUILD)/tests/gpu/rates.o
	$(call say,LD,$(@:$(BUILD)/%=%))
	$(Q)$(link) $^ -ldl -o $@

# Test programs that run.sh runs on a GPU.
gpu_programs := $(shell tests/gpu/run.sh --programs)
gpu-bundle: library $(examples:%.c=$(BUILD)/%) $(BUILD)/tests/oracle $(BUILD)/bench/bench $(guard) $(aware) $(gpu_rates) $(BUILD)/tests/soak/soak $(gpu_programs:%=$(BUILD)/tests/%) ## build/olympus-gpu.tar.xz, for tests/gpu/run.sh on a machine with a GPU
	$(Q)BUILD=$(BUILD) MPICC=$(MPICC) tests/gpu/make-bundle

# -- demonstration ------------------------------------------------------------------------------------------------------
# $1 ranks, $2 devices of each, $3 program and arguments, $4 headline
show = @printf '\n== %s: %s ranks x %s devices\n' '$4' $1 $2; \
       MPIRUN=$(MPIRUN) launch/olyrun -n $1 -d $2 --timeout 120 $(BUILD)/examples/$3

demo: library $(guard) $(meet) $(examples:%.c=$(BUILD)/%) ## runs three examples on several ranks
	$(call show,4,2,toy,the sum of the sines of a sharded array)
	$(call show,2,4,heat2d --png $(BUILD)/heat2d.png,heat spreading over a plate)
	$(call show,2,4,matmul,a sharded matrix product)
	@printf '\nwrote %s\n' $(BUILD)/heat2d.png

# -- looking at the source ----------------------------------------------------------------------------------------------
layers: ## checks that includes point only downward
	@tests/project/test_layers.sh

# ctags writes tags (vi and most editors), etags TAGS (Emacs): of Universal Ctags, Exuberant Ctags or Emacs; those that are there.
CTAGS ?= ctags
ETAGS ?= etags
tags_in = .
indexed = $(sort $(every_source) $(headers) $(shell find runtime kernels collectives -name '*.[ch]' -o -name '*.def'))

tags: ## an index of the source for editors: tags (ctags), TAGS (etags)
	@made=; \
	if command -v $(CTAGS) >/dev/null; then $(CTAGS) -o $(tags_in)/tags $(indexed) && made="$$made tags"; fi; \
	if command -v $(ETAGS) >/dev/null; then $(ETAGS) -o $(tags_in)/TAGS $(indexed) && made="$$made TAGS"; fi; \
	if [ -z "$$made" ]; then echo 'make tags needs ctags or etags: install universal-ctags (apt, dnf, brew) or Emacs'; exit 1; fi; \
	echo "wrote$$made"

lint_flags = -std=gnu11 $(inside) $(cmocka_cflags) $(mpi_cflags) -DOLY_ISA=base
# $1 tool, $2 command: runs it, or says that it is missing
with_tool = if command -v $1 >/dev/null; then echo '  LINT    $1'; $2 || failed=1; \
            else echo '  LINT    $1 is missing: not checked'; fi

unformatted = for file in $(every_source) $(headers); do \
              clang-format --dry-run -Werror $$file 2>/dev/null || { echo "not formatted: $$file"; failed=1; }; done

# Tests set variables up in set-up functions that the analysers do not follow: only their layout is checked. clang-tidy leaves a file
# for each source that it found clean, so that the next run reads only what has changed (`make -j2 lint` reads two at a time).
lint_library  = $(sources) $(cpu_kernels)
lint_programs = $(guards) $(tools) $(meets) $(awares) $(examples) $(bench)
tidied        = $(patsubst %.c,$(BUILD)/lint/%.tidied,$(lint_library) $(lint_programs))
$(lint_library:%.c=$(BUILD)/lint/%.tidied): lint_of = $(of_library) $(hdf5_cflags) -DOLY_HDF5_FILE=\"\" -DOLY_HDF5_PATH=\"\" \
                                                      -DOLY_BUILD_FOLDER=\"\" -isystem $(CUDA_HOME)/include
$(lint_programs:%.c=$(BUILD)/lint/%.tidied): lint_of = $(crypto_cflags) $(pmix_cflags) -DOLYRUN_VERSION=\"\"
$(BUILD)/lint/%.tidied: %.c .clang-tidy
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet $< -- $(lint_flags) $(lint_of) 2>/dev/null
	$(Q)$(CC) $(lint_flags) $(lint_of) -MM -MP -MT $@ -MF $@.d $< && touch $@
-include $(tidied:%=%.d)
# $1 files, $2 their flags. Left out: what cppcheck cannot parse (elementwise.def), declarations that it takes for comma operators,
# sizes that are enumerators of two lists (transformer.c), elements that are passed as bytes, and shifts that gcc and clang define.
check = cppcheck --quiet --error-exitcode=1 --inline-suppr -j 2 --enable=warning$(comma)portability $(unchecked:%=--suppress=%) \
        $(filter -I%,$(inside)) -DOLY_ISA=base $2 $1
unchecked = missingInclude uninitvar negativeIndex preprocessorErrorDirective unknownEvaluationOrder internalAstError unknownMacro \
            constStatement invalidPointerCast shiftTooManyBitsSigned '*:*cmocka.h' 'arrayIndexOutOfBounds:examples/transformer.c'

tidy: $(tidied)
lint: ## clang-format, cppcheck and clang-tidy, as far as installed
	@failed=0; \
	$(call with_tool,clang-format,$(unformatted)); \
	$(call with_tool,cppcheck,$(call check,$(lint_library),$(of_library)) && $(call check,$(lint_programs),)); \
	$(call with_tool,clang-tidy,$(MAKE) -k --no-print-directory tidy); \
	exit $$failed

# -- installing ---------------------------------------------------------------------------------------------------------
# Libs.private has the libraries, not their packages: those would add what only programs without any shared library need (udev).
to      = $(DESTDIR)$(PREFIX)
public := $(call files,include,*.h)

templates = $(sort $(wildcard launch/templates/*))

install: library $(guard) $(meet) $(aware) $(tool) ## library, headers, olyrun, templates of job scripts, a pkg-config file and the licence
	install -d $(to)/lib/pkgconfig $(to)/bin
	for header in $(public); do install -D -m 644 $$header $(to)/$$header || exit; done
	install -m 644 $(library) $(to)/lib
	install -m 755 $(shared) $(to)/lib/libolympus.so.$(version)
	install -m 644 $(shared)-gdb.py $(to)/lib/libolympus.so.$(version)-gdb.py
	ln -sf libolympus.so.$(version) $(to)/lib/libolympus.so.0
	ln -sf libolympus.so.0 $(to)/lib/libolympus.so
	$(if $(wildcard launch/olyrun),install -m 755 launch/olyrun $(to)/bin)
	install -D -m 755 $(guard) $(to)/libexec/olympus/olyguard
	install -m 755 $(tool) $(to)/bin/oly
	install -m 755 $(meet) $(to)/libexec/olympus/olymeet
	install -m 755 $(aware) $(to)/libexec/olympus/olyaware
	install -d $(to)/share/olympus/templates
	install -m 644 $(templates) $(to)/share/olympus/templates
	install -D -m 644 LICENSE $(to)/share/doc/olympus/LICENSE
	@printf '%s\n' 'Name: olympus' 'Description: arrays sharded over MPI ranks and local devices' 'Version: $(version)' \
		'Cflags: -I$(PREFIX)/include' 'Libs: -L$(PREFIX)/lib -Wl$(comma)-rpath$(comma)$(PREFIX)/lib -lolympus' \
		'Libs.private: $(libs) $(mpi_libs)' > $(to)/lib/pkgconfig/olympus.pc

installed = $(public) lib/$(notdir $(library)) \
            $(foreach v,.$(version) .$(version)-gdb.py .0,lib/libolympus.so$v) lib/libolympus.so bin/olyrun bin/oly libexec/olympus/olyguard libexec/olympus/olymeet libexec/olympus/olyaware $(templates:launch/%=share/olympus/%) lib/pkgconfig/olympus.pc share/doc/olympus/LICENSE

uninstall: ## removes what install has installed
	rm -f $(installed:%=$(to)/%)
	for d in $(filter-out include,$(sort $(patsubst %/,%,$(dir $(public))))) libexec/olympus share/olympus/templates share/olympus share/doc/olympus; do [ ! -d $(to)/$$d ] || rmdir --ignore-fail-on-non-empty $(to)/$$d; done

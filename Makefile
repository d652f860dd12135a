# `make` alone prints help: every target with a "##" sentence behind it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BUILD := build
VENV := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
export PYTHONDONTWRITEBYTECODE := 1

# Where the demo of `make run` answers on this machine.
UI_PORT ?= 8443
SITE_PORT ?= 8080
export UI_PORT SITE_PORT

# The speeds of the tests, quickest first; each is a folder (or two) below tests/.
SPEEDS := unit django peers web vm
unit_FOLDERS := tests/unit tests/golden
django_FOLDERS := tests/django
peers_FOLDERS := tests/peers
web_FOLDERS := tests/web
vm_FOLDERS := tests/vm
# One test by name: make test-vm ARGS="-k nat"
ARGS ?=
# Without ARGS as many run side by side. What measures seconds is a benchmark (bench/).
SIDE_BY_SIDE ?= $(if $(ARGS),,2)
# Of those that also wait, for a server, a browser or a program, there is room for one more.
WAITING ?= $(if $(SIDE_BY_SIDE),3)
# What real processes do is looked at once more before it counts as a failure, and both are told (decision 102).
ONCE_MORE ?= $(if $(ARGS)$(IMAGE),,--reruns 1)
# The longest file first (tests/parts.py), and not the one with the most tests.
BY_FILE := --dist loadfile --no-loadscope-reorder
unit_TOGETHER = -n $(WAITING) $(BY_FILE)
django_TOGETHER = -n $(SIDE_BY_SIDE) $(BY_FILE)
# Each has servers of its own; test_kinds stops all of its, so a file stays together.
peers_TOGETHER = -n $(WAITING) $(BY_FILE)
web_TOGETHER = -n $(WAITING) --dist worksteal
vm_TOGETHER = -n $(SIDE_BY_SIDE) --dist worksteal
peers_AGAIN = $(ONCE_MORE)
web_AGAIN = $(ONCE_MORE)
vm_AGAIN = $(ONCE_MORE)
# ALL=1: with what `make test` leaves out, too: the longest stories and all variants (some two hours), and test-systems.
ALL ?=
# All stories of test-vm on a disk image: make test-vm IMAGE=build/image/fairlead.img [FIRMWARE=uefi]
IMAGE ?=
FIRMWARE ?= bios
# REST=1: only the stories that have not passed on this image with this firmware yet.
REST ?=

SHELL_SCRIPTS = $(shell git ls-files -co --exclude-standard | xargs -r grep -lE '^\#! ?/(usr/)?bin/(env )?(ba|da)?sh' 2>/dev/null)

help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@for speed in $(SPEEDS); do printf '  make test-%-11s only the tests of this speed: %s\n' $$speed "$$(sed -n "s/^$${speed}_FOLDERS := //p" Makefile)"; done

run: setup image-lab ## Boot the appliance and its demo: web UI and a balanced site in the host's browser
	@$(PYTHON) -m board.lab.run

stop: ## End what `make run` started
	@python3 -m board.lab.run --stop

dev: setup assets guide ## The web UI alone, with a pretended appliance and sample data; reloads on change
	@PYTHONPATH=. DJANGO_SETTINGS_MODULE=tests.fake.settings FAIRLEAD_PLAIN_HTTP=1 $(PYTHON) webui/manage.py devserver

# The stories begin while the peers, which wait for more than half of their time, still run; what they say comes whole,
# at the end. Meanwhile they give way: a real server that is asked has less patience than a story.
test: setup assets ## All tests, from the quick ones to booted machines; prints the time of each speed
	@set -e; report=""; \
	$(MAKE) test-images >$(BUILD)/images.log 2>&1 & \
	trap "kill $$! 2>/dev/null || :" EXIT; \
	$(MAKE) lint; \
	for speed in $(filter-out peers vm,$(SPEEDS)) peers+vm $(if $(ALL),systems); do \
		start=$$(date +%s); $(MAKE) test-$$speed; \
		report="$$report\n  $$speed $$(($$(date +%s) - start)) s"; \
	done; printf "time of each speed:$$report\n"

# One that fails does not end the other: what both found is told.
test-peers+vm:
	@$(MAKE) -j2 -k --output-sync=target test-peers test-vm vm_GIVES_WAY="nice -n 5"

$(SPEEDS:%=test-%): test-%: setup-test assets
	@echo "== tests: $*"
	@$($*_GIVES_WAY) $(PYTHON) -m pytest -q $($*_FOLDERS) $(if $(SIDE_BY_SIDE),$($*_TOGETHER)) $($*_AGAIN) $(ARGS)
test-vm power-cuts: image-lab
$(SPEEDS:%=test-%): export FAIRLEAD_ALL := $(ALL)
test-vm power-cuts footprint bench: export FAIRLEAD_IMAGE := $(abspath $(IMAGE))
test-vm power-cuts footprint bench: export FAIRLEAD_FIRMWARE := $(FIRMWARE)
test-vm: export FAIRLEAD_REST := $(REST)
# An update that this image takes is signed with the key that it was built with.
test-vm power-cuts footprint: export FAIRLEAD_KEYS = $(if $(IMAGE),$(abspath $(KEYS)))

LINES ?= 60
test-times: ## Where the time of the tests went when each ran last: booting, applying, waiting, browsing; and close waits (LINES=60)
	@python3 -m tests.times $(LINES)

lint: setup-test ## ruff, mypy, shellcheck and Django's own checks
	@$(PYTHON) -m ruff check --no-cache .
	@$(PYTHON) -m ruff format --no-cache --check .
	@PYTHONPATH=webui $(PYTHON) -m mypy
	@shellcheck $(SHELL_SCRIPTS)
	@mkdir -p $(BUILD)/dev
	@$(PYTHON) webui/manage.py check --deploy --fail-level WARNING
	@$(PYTHON) webui/manage.py makemigrations --check --dry-run

format: setup-test ## Let ruff lay out the Python code
	@$(PYTHON) -m ruff check --fix-only -q .
	@$(PYTHON) -m ruff format -q .

# --- what the targets above need on this machine; each installs itself ---

setup: ## Install what building and booting needs (apt-get, pip); a moment when it is all there
	@board/lab/host-packages.sh run
	@$(MAKE) -s $(VENV)/.run-stamp

setup-test: ## The same for the tests
	@board/lab/host-packages.sh test
	@$(MAKE) -s $(VENV)/.test-stamp

setup-bench: setup-test
	@board/lab/host-packages.sh bench
	@$(MAKE) -s $(VENV)/.bench-stamp

$(VENV)/bin/python:
	@python3 -m venv $(VENV)

$(VENV)/.run-stamp: webui/requirements.txt board/lab/requirements.txt | $(VENV)/bin/python
	@echo "installing Python packages: $^"
	@$(PYTHON) -m pip install -q --disable-pip-version-check $(patsubst %,-r %,$^)
	@touch $@

$(VENV)/.test-stamp: tests/requirements.txt $(VENV)/.run-stamp
	@echo "installing Python packages: $<"
	@$(PYTHON) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

$(VENV)/.bench-stamp: bench/requirements.txt $(VENV)/.test-stamp
	@echo "installing Python packages: $<"
	@$(PYTHON) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

assets: setup $(BUILD)/assets/.stamp ## Take the front-end files that webui/package-lock.json names

$(BUILD)/assets/.stamp: webui/assets.py webui/package.json webui/package-lock.json | $(VENV)/.run-stamp
	@$(PYTHON) webui/assets.py $(@D)
	@touch $@

guide: setup ## Render docs/guide/ as the web UI shows it; a link that leads nowhere ends it
	@$(PYTHON) board/common/guide.py $(BUILD)/guide.json

image-lab: setup assets ## Build the developer image (cached by the content of its inputs)
	@$(PYTHON) -m board.lab.build

# What tests start or ask. `make test` builds it beside the first tests; who needs a part of it sooner waits for it.
test-images: setup assets
	@$(PYTHON) -m board.lab.build
	@$(PYTHON) -c "from board.lab import peers; peers.build()"

image-lab-disk: setup-test assets ## Build the developer's disk image: the same, started by GRUB from a slot
	@$(PYTHON) -m board.lab.disk

CUTS ?= 50
power-cuts: setup-test assets ## Cut the power CUTS times (50) at random moments of an update; the box must boot and forward
	@FAIRLEAD_ALL=1 FAIRLEAD_CUTS=$(CUTS) $(PYTHON) -m pytest -q tests/vm/test_update.py -k power_cuts $(ARGS)

PART ?=
test-long: setup-test image-lab ## The stories that make test leaves out: all of them, or PART=1/4 and so on, each in less than an hour
	@FAIRLEAD_ALL=1 FAIRLEAD_PART=$(PART) $(PYTHON) -m pytest -q tests/vm -m thorough \
		$(if $(SIDE_BY_SIDE),$(vm_TOGETHER)) $(ARGS)

test-systems: setup-test ## The scripts for real servers on machines with systemd-networkd, netplan and NetworkManager; ten minutes
	@$(PYTHON) -m pytest -q tests/systems $(ARGS)

# How many random snapshots, and how many that do not pass validation. `make test` takes 100 of each, and 40 in a guest.
COUNT ?= 10000
random-snapshots: setup-test image-lab ## Ask nft, ldirectord and the kernel about COUNT random snapshots (10000); the guest takes most of the time
	@FAIRLEAD_SNAPSHOTS=$(COUNT) $(PYTHON) -m pytest -q -s tests/vm/test_random_snapshots.py \
		tests/unit/lbconfig/test_mutated_snapshots.py $(ARGS)

# A report of a release has the figures: make undisturbed IMAGE=…
undisturbed: export FAIRLEAD_IMAGE := $(abspath $(IMAGE))
undisturbed: export FAIRLEAD_FIRMWARE := $(FIRMWARE)
undisturbed: COUNT = 100
undisturbed: setup-test image-lab ## Change the box COUNT times (100) and let it go back by itself, under traffic that must not notice
	@FAIRLEAD_CHANGES=$(COUNT) $(PYTHON) -m pytest -q -s tests/vm/test_undisturbed.py $(ARGS)

apply-cuts: COUNT = 200
apply-cuts: setup-test image-lab ## Cut the power COUNT times (200) at any moment of applies and after each step, kill what runs
	@FAIRLEAD_ALL=1 FAIRLEAD_APPLY_CUTS=$(COUNT) $(PYTHON) -m pytest -q -s \
		tests/vm/test_lost_writes.py tests/vm/test_interrupted.py $(ARGS)

record-machines: setup-test ## Record again what kernel and ethtool show of the machines that QEMU plays, for the doctor's tests
	@PYTHONPATH=webui $(PYTHON) -m tests.lab.record $(ARGS)

FUZZ = tests/django/test_api_fuzz.py tests/unit/applier/test_socket_fuzz.py
fuzz: COUNT = 20000
fuzz: setup-test assets ## Try COUNT (20000) requests, good and wrong ones, on the JSON API and on the applier's socket
	@for file in $(FUZZ); do FAIRLEAD_FUZZ=$(COUNT) $(PYTHON) -m pytest -q $$file $(ARGS) || exit 1; done

# --- the image that is flashed: built by Buildroot (board/common/buildroot.py says what the variables mean) ---

KEYS ?= keys
export KEYS
BUILDROOT ?=
OUT ?= $(BUILD)/buildroot
EXTRA ?=
export BUILDROOT OUT EXTRA

image: setup-image $(KEYS)/cert.pem ## Build the disk image and the update bundle with Buildroot (an hour or two the first time)
	@$(PYTHON) -m board.common.stage $(BUILD)/image
	@$(PYTHON) -m board.common.buildroot image
	@$(PYTHON) -m board.common.sizes $(OUT)

menuconfig: setup-image ## Change Buildroot's settings by hand; says what to carry over
	@$(PYTHON) -m board.common.buildroot menuconfig

sbom: setup-image ## What the image is made of: CycloneDX, in OUT/images/
	@$(PYTHON) -m board.common.buildroot sbom

release-report: sbom ## What was built and what its stories said, for who takes it: report.md in OUT/images/
	@$(PYTHON) -m board.common.report $(OUT)

legal-info: setup-image ## Licences and sources of everything in the image, in OUT/legal-info/
	@$(PYTHON) -m board.common.stage $(BUILD)/image
	@$(PYTHON) -m board.common.buildroot legal-info

compare: setup ## Name what differs between two builds: make compare A=first.img B=second.img
	@$(PYTHON) -m board.common.compare $(A) $(B)

keys: setup ## Make the key that signs updates, once, in KEYS (default: keys/); keep a copy of it
	@$(PYTHON) -m board.pc.keys $(KEYS)

$(KEYS)/cert.pem: | $(VENV)/.run-stamp
	@$(PYTHON) -m board.pc.keys $(KEYS)

setup-image: setup assets
	@board/lab/host-packages.sh image

BOOTS ?= 3
footprint: setup-test image-lab ## Measure the booted image: size, memory, seconds to the first balanced answer
	@PYTHONPATH=webui $(PYTHON) -m bench.footprint $(BOOTS)

QUICK ?=
ONLY ?=
bench: setup-bench image-lab ## Repeat the papers' measurements, beside other balancers (QUICK=1: an hour or more; ONLY=part,part); writes docs/benchmarks.md
	@PYTHONPATH=webui $(PYTHON) -m bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

bench-instructions: ONLY = instructions,steps
bench-instructions: bench ## Count the director's instructions for each connection and packet, ours and others' (QUICK=1: half an hour)

bench-report: setup-bench ## docs/benchmarks.md and its pictures anew, from what runs of make bench have kept
	@PYTHONPATH=webui $(PYTHON) -m bench --report

bench-health: setup-test image-lab ## Measure health checks at size, beside ldirectord as it comes (SERVERS="50 200 1000" WAYS="plain ours" BEFORE=commit PATIENCE=seconds)
	@PYTHONPATH=webui $(PYTHON) -m bench.health $(SERVERS) $(if $(WAYS),--ways $(WAYS)) $(if $(BEFORE),--before $(BEFORE)) $(if $(PATIENCE),--patience $(PATIENCE))

bench-apply: setup-test image-lab ## Measure an apply of 1,000 services with 10 real servers each, beside ipvsadm by hand
	@PYTHONPATH=webui $(PYTHON) -m bench.apply $(SERVICES)

bench-schedulers: setup-test image-lab ## Measure what each scheduler makes of two unequal servers, beside round robin
	@PYTHONPATH=webui $(PYTHON) -m bench.schedulers

clean: ## Remove everything that was built
	@rm -rf $(BUILD)

.PHONY: guide test-images test-long record-machines help run stop dev test test-times $(SPEEDS:%=test-%) test-peers+vm lint format bench bench-instructions bench-report footprint bench-apply bench-health bench-schedulers image-lab image-lab-disk power-cuts random-snapshots test-systems undisturbed apply-cuts fuzz setup setup-bench setup-test assets clean \
	image menuconfig sbom release-report legal-info compare keys setup-image

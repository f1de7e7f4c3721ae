#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the recipes of images offline: check_images.py CONTAINERFILE DEFINITION DOCKERIGNORE [BUILD]. That they copy files which are
there, and all that the library in the folder BUILD was made from; that their scripts are scripts; that the packages exist and have every
library which is linked or opened; that the programs they and the manifests beside them name are installed; that ssh and its server
agree. Prints a line for each recipe, and what could not be checked; exit status 1 if one is wrong."""
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENV", "CMD", "ENTRYPOINT", "ARG", "LABEL"}
SECTIONS = {"files", "post", "environment", "runscript", "test", "labels", "help"}
IN_EVERY_IMAGE = {"libc6", "libgcc-s1", "libstdc++6"}
unchecked = []


def output_of(*command, text=""):
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def read(path):
    with open(path) as file:
        return file.read()


def in_tree(path):
    return os.path.join(ROOT, path)


# -- reading ------------------------------------------------------------------------------------------------------------------
def instructions(path):
    """(name, rest) of each instruction of a Containerfile."""
    text = re.sub(r"^#.*\n", "", read(path), flags=re.M)
    return [tuple((line.split(None, 1) + [""])[:2]) for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]


def sections(path):
    """The header of a definition by its keys, and its sections by their names."""
    first, *rest = re.split(r"^%", read(path), flags=re.M)
    header = dict(re.findall(r"^(\w+): *(\S+)", first, flags=re.M))
    return header, {part.split("\n", 1)[0].strip(): part.split("\n", 1)[1] for part in rest}


def allowed(path):
    """What a .dockerignore lets through that ignores all and makes exceptions."""
    lines = [line for line in read(path).splitlines() if line.strip() and not line.startswith("#")]
    if lines[:1] != ["*"] or not all(re.fullmatch(r"![\w.-]+", line) for line in lines[1:]):
        return None
    return {line[1:] for line in lines[1:]}


def installed_by_apt(script):
    """The packages that a script installs."""
    words = " ".join(re.findall(r"apt-get install([^&;|\n]*)", re.sub(r"\\\n", " ", script))).split()
    return [word for word in words if not word.startswith("-")]


# -- checks: each gives a list of what is wrong -----------------------------------------------------------------------------------
def script_errors(what, script):
    status, said = output_of("sh", "-n", text=script)
    errors = [f"{what} is no script: {said.strip()}"] if status else []
    for name in re.findall(r"(?:^|[\s;&])(launch/[\w/.-]+)", script):
        if not os.access(in_tree(name), os.X_OK):
            errors.append(f"{what} runs {name}, which is no program here")
    return errors


def needed_by_build(build):
    """The files and folders at the root of the tree that the library, its programs and the examples are made from, and installed from."""
    names = {"Makefile"}
    install = re.search(r"^install:.*\n((?:\t.*\n)+)", read(in_tree("Makefile")), flags=re.M)
    for word in re.findall(r"[\w./-]+", install.group(1)):
        if os.path.exists(in_tree(word)) and not word.startswith((".", "/")):
            names.add(word.split("/")[0])
    for path in glob.glob(f"{build}/*/**/*.d", recursive=True) if build else []:
        if not os.path.relpath(path, build).startswith(("tests/", "bench/", "lint/")):
            names |= set(re.findall(r"\s([A-Za-z0-9_]+)/", read(path)))
    return {name for name in names if os.path.exists(in_tree(name)) and not name.startswith("build")}


def copied_errors(what, copied, build):
    errors = [f"{what}: there is no {name}" for name in sorted(copied) if not os.path.exists(in_tree(name))]
    return errors + [f"{what} leaves out {name}" for name in sorted(needed_by_build(build) - copied)]


@functools.lru_cache
def known_packages():
    return set(output_of("apt-cache", "pkgnames")[1].split()) if shutil.which("apt-cache") else set()


def package_errors(packages, image):
    """Are the packages there, in the release of the image?"""
    ours = set(re.findall(r"[a-z0-9.+-]+", read(in_tree("launch/install-dependencies"))))
    others = [p for p in packages if p not in ours]
    if not release_is(image) or "openmpi-bin" not in known_packages():
        if others:
            unchecked.append(f"that {image} has {' '.join(others)}: this machine does not know its packages")
        return []
    return [f"{image} has no package {p}" for p in others if p not in known_packages()]


def release_is(image):
    """Is this machine's release the one of the image "debian:NAME-slim"?"""
    try:
        release = dict(re.findall(r'^(\w+)="?([^"\n]*)', read("/etc/os-release"), flags=re.M))
    except OSError:
        return False
    return re.fullmatch(f"{release.get('ID')}:{release.get('VERSION_CODENAME')}(-slim)?", image) is not None


def library_errors(packages, image, build):
    """Do the packages have what the programs are linked with, and HDF5, which is opened at its first use?"""
    programs = [f"{build}/{name}" for name in ("libolympus.so", "launch/olymeet", "launch/olyguard", "launch/olyaware", "launch/oly/oly")]
    if not build or not all(map(os.path.exists, programs)):
        unchecked.append("the libraries of the image: there is no build")
        return []
    needed = set(re.findall(r"NEEDED\s+(\S+)", output_of("objdump", "-p", *programs)[1]))
    needed |= set(re.findall(r"^hdf5_file +:= (\S+)", read(f"{build}/packages.mk"), flags=re.M))
    if not release_is(image) or not shutil.which("dpkg") or any("libmpich" in name for name in needed):
        unchecked.append("the libraries of the image: this build is of another release or another MPI")
        return []
    errors, owners = [], output_of("dpkg", "-S", *[f"*/{name}" for name in needed])[1]
    for name in sorted(needed):
        of = set(re.findall(rf"^([^:\s]+)[^\n]*/{re.escape(name)}$", owners, flags=re.M))
        if not of:
            unchecked.append(f"whose {name} is")
        elif not of & (set(packages) | IN_EVERY_IMAGE):
            errors.append(f"{name} is missing: package {' or '.join(sorted(of))}")
    return errors


def program_errors(text):
    """Is every program that a template names below /opt/olympus/bin installed there?"""
    names = re.search(r"^installed = ((?:.*\\\n)*.*)", read(in_tree("Makefile")), flags=re.M).group(1).split()
    there = {name[4:] for name in names if name.startswith("bin/")}
    there |= {os.path.basename(path)[:-2] for path in glob.glob(in_tree("examples/*.c"))}
    return [f"there is no {name} to run" for name in re.findall(r"/opt/olympus/bin/(\w+)", text) if name not in there]


def settings(scripts, path):
    """The text that a printf among the scripts writes to this file, and its lines as a dictionary."""
    for script in scripts:
        for command in re.split(r"&&|;", script):
            match = re.fullmatch(rf"\s*(printf .*)>\s*{re.escape(path)}\s*", command, flags=re.S)
            if match:
                text = output_of("sh", "-c", match.group(1))[1]
                return text, {k.lower(): v for k, v in (line.split(None, 1) for line in text.splitlines())}
    return "", {}


def ssh_errors(scripts, environment, manifest):
    """The MPI operator overrides OMPI_MCA_plm_rsh_args and mounts keys over ~/.ssh: what ssh needs stands in a file of the system."""
    errors, server_file = [], re.search(r'"-f", "([^"]+)"', manifest).group(1)
    text, client = settings(scripts, "/etc/ssh/ssh_config.d/olympus.conf")
    _, server = settings(scripts, server_file)
    if "OMPI_MCA_plm_rsh_args" in environment:
        errors.append("OMPI_MCA_plm_rsh_args has no effect: the operator overrides it")
    if not server:
        errors.append(f"nothing writes {server_file}, which the workers of the MPIJob read")
    keys = re.search(r"sshAuthMountPath: (\S+)", manifest).group(1)
    errors += [f"sshd looks for {server.get(k)}, but the keys are in {keys}" for k in ("hostkey", "authorizedkeysfile")
               if not server.get(k, "").startswith(keys + "/")]
    wanted = {"port": server.get("port", "22"), "stricthostkeychecking": "no", "userknownhostsfile": "/dev/null"}
    for key, value in wanted.items():
        if client.get(key, "22" if key == "port" else "") != value:
            errors.append(f"ssh needs {key} {value} in /etc/ssh/ssh_config.d, and has {client.get(key)}")
    if not shutil.which("ssh"):
        unchecked.append("that ssh reads its settings: no ssh here")
    elif not errors:
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            status, said = output_of("ssh", "-G", "-F", file.name, "-o", "ConnectionAttempts=10", "olympus-worker-0.olympus")
        if status or f"port {wanted['port']}\n" not in said or "stricthostkeychecking false\n" not in said:
            errors.append(f"ssh does not read its settings so: {said[:300]}")
    return errors


# -- the two kinds of recipes -----------------------------------------------------------------------------------------------------
def containerfile_errors(path, copied, build, manifest):
    errors, stages, scripts, environment = [], {}, {}, ""
    stage, image = None, None
    for name, rest in instructions(path):
        if name not in INSTRUCTIONS:
            errors.append(f"{name} is no instruction")
        if name == "FROM":
            image, stage = rest.split()[0], (rest.split() + [None])[2 if " AS " in rest else -1]
            stages[stage] = stages.get(image, image)
            scripts[stage] = []
            if image not in stages and not re.fullmatch(r"[\w./-]+:[\w.-]+", image):
                errors.append(f"{image} names no release")
        elif name == "RUN":
            scripts[stage].append(rest)
            errors += script_errors("RUN", rest)
        elif name == "ENV":
            environment += rest + "\n"
        elif name == "COPY":
            *sources, _ = [word for word in rest.split() if not word.startswith("--")]
            of = re.search(r"--from=(\S+)", rest)
            if of and (of.group(1) not in stages or of.group(1) == stage):
                errors.append(f"there is no stage {of.group(1)}")
            elif of:
                made = " ".join(scripts[of.group(1)])
                errors += [f"stage {of.group(1)} does not make {s}" for s in sources if f"PREFIX={s} " not in made + " "]
            else:
                errors += [f"COPY: there is no {s}" for s in sources if not os.path.exists(in_tree(s))]
        elif name in ("CMD", "ENTRYPOINT"):
            errors += program_errors("/opt/olympus/bin/" + re.match(r'\["([^"]+)"', rest).group(1).split("/")[-1])
    if copied is None:
        return errors + [".dockerignore does not ignore all but a list"]
    errors += copied_errors(".dockerignore", copied, build)
    for name, parts in scripts.items():
        errors += package_errors(installed_by_apt(" ; ".join(parts)), stages[name])
    errors += library_errors(installed_by_apt(" ; ".join(scripts[stage])), stages[stage], build)
    return errors + ssh_errors(scripts[stage], environment, manifest)


def definition_errors(path, copied, build):
    header, parts = sections(path)
    errors = [f"%{name} is no section" for name in parts if name not in SECTIONS]
    files = dict(line.split() for line in parts["files"].splitlines() if line.strip())
    errors += copied_errors("%files", set(files), build)
    errors += [f"{name} goes to {to}, not below /src" for name, to in files.items() if to != f"/src/{name}"]
    if copied is not None and set(files) != copied:
        errors.append(f"%files and .dockerignore differ: {' '.join(sorted(set(files) ^ copied))}")
    for name in ("post", "environment", "runscript", "test"):
        errors += script_errors("%" + name, parts[name])
    return errors + package_errors(installed_by_apt(parts["post"]), header["From"]) + program_errors(parts["test"])


def main(containerfile, definition, ignore, build=None):
    templates = in_tree("launch/templates")
    copied = allowed(ignore)
    results = {containerfile: containerfile_errors(containerfile, copied, build, read(f"{templates}/kubernetes-mpijob.yaml")),
               definition: definition_errors(definition, copied, build)}
    for path in sorted(glob.glob(f"{templates}/*.yaml")):
        results[path] = program_errors(read(path))
    for path, errors in results.items():
        print(f"{os.path.basename(path)}: {'; '.join(errors) or 'ok'}")
    for what in unchecked:
        print("not checked:", what)
    print("never checked: that the images can be built from their bases, and run, which takes a network and podman, docker or Apptainer")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks Kubernetes manifests offline: check_manifests.py FILE... Each document against the schema of its kind in
schemas/manifests.json, and what a schema cannot say: that the numbers of processes agree, and that what is referred to is there.
Prints a line per document; exit status 1 if one is wrong, 77 without the packages yaml and jsonschema."""
import json
import os
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"no Python package {missing.name}: skipped")
    sys.exit(77)

SCHEMAS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas", "manifests.json")))


def schema_errors(document):
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    if kind not in SCHEMAS["kinds"]:
        return [f"no schema for {kind}"]
    schema = dict(SCHEMAS["kinds"][kind], **{"$defs": SCHEMAS["$defs"]})
    errors = jsonschema.Draft7Validator(schema).iter_errors(document)
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in errors]


def job_errors(job):
    """Of an indexed job whose pods are processes."""
    pod = job["template"]["spec"]
    container = pod["containers"][0]
    env = {e["name"]: e for e in container.get("env", [])}
    errors = []
    if job.get("completionMode") != "Indexed":
        errors.append("the pods have no index")
    if not job["completions"] == job["parallelism"] == int(env["OLYMPUS_NUM_PROCESSES"]["value"]):
        errors.append("completions, parallelism and OLYMPUS_NUM_PROCESSES differ")
    if "secretKeyRef" not in env["OLYMPUS_SECRET"].get("valueFrom", {}):
        errors.append("the secret is no Secret")
    volumes = {v["name"] for v in pod.get("volumes", [])}
    errors += [f"no volume {m['name']}" for m in container.get("volumeMounts", []) if m["name"] not in volumes]
    return errors


def meaning_errors(document):
    kind, spec = document["kind"], document.get("spec", {})
    if kind == "Job":
        return job_errors(spec)
    if kind == "JobSet":
        jobs = {j["name"]: j for j in spec["replicatedJobs"]}
        coordinator = spec["coordinator"]["replicatedJob"]
        return job_errors(jobs[coordinator]["template"]["spec"]) if coordinator in jobs else [f"no job {coordinator}"]
    if kind == "MPIJob":
        specs = spec["mpiReplicaSpecs"]
        arguments = specs["Launcher"]["template"]["spec"]["containers"][0]["args"]
        ranks = int(arguments[arguments.index("-n") + 1])
        return [] if ranks == specs["Worker"]["replicas"] * spec["slotsPerWorker"] else [f"{ranks} ranks, but other slots"]
    return []


def main(paths):
    wrong = 0
    for path in paths:
        for document in yaml.safe_load_all(open(path)):
            errors = schema_errors(document) or meaning_errors(document)
            wrong += bool(errors)
            print(f"{os.path.basename(path)}: {document.get('kind')}: {'; '.join(errors) or 'ok'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

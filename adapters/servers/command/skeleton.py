"""What a new study says of a server of your own: an example to replace, with every key."""

SKELETON = """\
study: {name}
servers:
  - name: command
    # The program that serves, in the foreground, on 127.0.0.1:{{port}}. Replace it by yours. A setting of
    # `space:` stands in a command as {{NAME}}; {{folder}} is the folder of this file.
    start: [gunicorn, -b, "127.0.0.1:{{port}}", -w, "{{workers}}", --chdir, "{{folder}}", "app:app"]
    # A configuration file: web.conf.j2 becomes {{directory}}/web.conf. It writes {{{{ settings.workers }}}}.
    # template: web.conf.j2
    # Must exit with 0 before each start:
    # check: [gunicorn, --check-config, --chdir, "{{folder}}", "app:app"]
    # Prints NAME=VALUE for each setting that is active, so that a trial measures what was asked:
    # read_back: [sh, "{{folder}}/ask.sh", "{{port}}"]
    # Asks the server to end; without it, it is killed:
    # stop: [kill, …]

# Its settings: what may be tuned, in which range. An expression may use cores, memory_mib and connections.
# {{allow: [semantic, risky]}} and others refine them; docs/spaces.md has every key.
space:
  - server: command
    title: My application
    parameters:
      workers:
        kind: int           # or float, bool, categorical with choices: [a, b]
        low: 1
        high: 4 * cores
        scale: log
        default: 1
        why: Processes that answer requests at the same time; each takes memory.
        source: https://docs.gunicorn.org/en/stable/settings.html

# It runs in a network namespace of its own; nothing that is installed is touched.
target: {{host: local, mode: sandbox}}

load:
  generator: {generator}          # {generators}
  path: /                 # a page that the server answers with 200; its length is learned at each start
  connections: 100
  keepalive: true
"""

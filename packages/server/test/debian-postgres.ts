import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { composeSettings } from './compose-settings.ts'

const deploy = path.resolve(import.meta.dirname, '../../../deploy')

/**
 * The programs of Debian's newest PostgreSQL, or those in POSTGRES_PROGRAMS, with those that npm's lacks: psql and pg_basebackup. Undefined where
 * none is installed.
 */
export const debianPrograms = globSync(process.env.POSTGRES_PROGRAMS ?? '/usr/lib/postgresql/*/bin')
  .filter((bin) => ['postgres', 'psql', 'pg_basebackup'].every((name) => existsSync(path.join(bin, name))))
  .sort((one, other) => majorOf(other) - majorOf(one))[0]

function majorOf(bin: string): number {
  return Number(bin.split('/')[4])
}

/** PostgreSQL does not run as root. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/**
 * Stands for the entrypoint of PostgreSQL's image: creates the data as it does, runs the script of docker-entrypoint-initdb.d on a server without
 * a network, and becomes the server.
 */
const entrypoint = `#!/bin/sh
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username "$POSTGRES_USER" --pwfile "$SECRETS/postgres-password" --encoding UTF8 --locale C.UTF-8 > /dev/null
  shift
  postgres "$@" -c listen_addresses= &
  server=$!
  until pg_isready --quiet; do sleep 0.1; done
  "$CONFIG/initialise.sh"
  kill -INT $server
  wait $server
  set -- postgres "$@"
fi
exec "$@"
`

export interface DeployedServer {
  readonly port: number
  readonly dataDir: string
  /** Runs deploy/postgres/start.sh. Resolves when the server answers on its port. */
  start(follows?: DeployedServer): Promise<void>
  /** Runs a command of a guide in the environment of the server's container. Returns what it writes. */
  run(command: string, env?: Readonly<Record<string, string>>): string
  kill(): Promise<void>
}

/** A place for servers that run the files of deploy/postgres with the secrets of deploy/secrets.sh, all on this machine. */
export function aDeployedPlace() {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-deployed-'))
  const secrets = composeSettings()
  const bin = path.join(place, 'bin')
  mkdirSync(bin)
  writeFileSync(path.join(bin, 'docker-entrypoint.sh'), entrypoint, { mode: 0o755 })
  const config = path.join(place, 'config')
  cpSync(path.join(deploy, 'postgres'), config, { recursive: true })
  cpSync(secrets.directory, path.join(place, 'secrets'), { recursive: true })
  secrets.remove()
  execFileSync('chmod', ['-R', 'a+rX', place])
  const password = new URL(secrets.env.DATABASE_URL ?? '').password
  const servers: DeployedServer[] = []
  return {
    place,
    account,
    secrets: path.join(place, 'secrets'),
    url: (...ports: number[]) =>
      `postgres://purser:${password}@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/purser`,
    async server(name: string): Promise<DeployedServer> {
      const made = aServer({ place, config, name, port: await aFreePort() })
      servers.push(made)
      return made
    },
    async remove() {
      for (const server of servers) await server.kill()
      rmSync(place, { recursive: true, force: true })
    },
  }
}

type Made = { readonly place: string; readonly config: string; readonly name: string; readonly port: number }

function aServer({ place, config, name, port }: Made): DeployedServer {
  const home = path.join(place, name)
  mkdirSync(home)
  chmodSync(home, 0o777)
  const dataDir = path.join(home, 'data')
  const environment = {
    PATH: `${path.join(place, 'bin')}:${debianPrograms}:${process.env.PATH}`,
    ...{ NAME: name, PGDATA: dataDir, PGHOST: home, PGPORT: String(port), POSTGRES_USER: 'postgres', LC_ALL: 'C' },
    ...{ CONFIG: config, SECRETS: path.join(place, 'secrets') },
  }
  const settings = [`listen_addresses=127.0.0.1`, `port=${port}`, `unix_socket_directories=${home}`, 'fsync=off']
  let child: ChildProcess | undefined
  let output = ''
  const run: DeployedServer['run'] = (command, env = {}) =>
    execFileSync('bash', ['-euo', 'pipefail', '-c', command], {
      ...account,
      ...{ cwd: home, env: { ...environment, ...env }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    })
  return {
    port,
    dataDir,
    run,
    async start(follows) {
      const env = follows && { FOLLOWS: '127.0.0.1', PGPORT: String(follows.port) }
      const args = [path.join(config, 'start.sh'), ...settings.flatMap((setting) => ['-c', setting])]
      const begun = spawn('sh', args, {
        ...account,
        ...{ cwd: home, env: { ...environment, ...env }, stdio: ['ignore', 'ignore', 'pipe'] },
      })
      child = begun
      begun.stderr.setEncoding('utf8').on('data', (text: string) => {
        output = `${output}${text}`.slice(-4_000)
      })
      const deadline = performance.now() + 60_000
      for (;;) {
        if (begun.exitCode !== null || performance.now() > deadline) throw new Error(`${name} did not start: ${output}`)
        try {
          run('pg_isready --quiet --host 127.0.0.1')
          return
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }
    },
    async kill() {
      const dying = child
      child = undefined
      if (dying === undefined || dying.exitCode !== null) return
      const ended = new Promise((resolve) => dying.once('close', resolve))
      dying.kill('SIGQUIT')
      await ended
    },
  }
}

export async function aFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

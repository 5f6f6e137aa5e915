import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { startChain } from '@purser/devnet'
import { afterEach, expect, test } from 'vitest'
import { foundOrganisation, verifyBody } from './crash/stage.ts'
import { aDeployedPlace, aFreePort, debianPrograms } from './debian-postgres.ts'
import { aPayer, request } from './world.ts'

/** The mounted image, and what `buildah inspect` says of it: deploy/build-image.sh sets them. */
const { IMAGE_ROOT: image, IMAGE_INSPECTED: inspected } = process.env
const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

interface Settings {
  readonly User: string
  readonly WorkingDir: string
  readonly Env: string[]
  readonly Entrypoint: string[]
  readonly Healthcheck: { readonly Test: string[] }
}

/**
 * The arguments of a process in the image as a container runs it: its root is read-only but for an empty /tmp and an empty /var/lib/purser, it is
 * the image's user without capabilities, and it has the image's environment alone. The network is this machine's.
 */
function inImage({ User, WorkingDir, Env }: Settings, env: Readonly<Record<string, string>>, command: string[]) {
  const steps = [
    'mount --bind "$IMAGE" "$IMAGE"',
    'mount -o remount,bind,ro "$IMAGE"',
    'for place in tmp var/lib/purser; do mount -t tmpfs -o mode=1777 tmpfs "$IMAGE/$place"; done',
    'mount -t proc proc "$IMAGE/proc"',
    'mount --bind /dev "$IMAGE/dev"',
    'exec chroot "$IMAGE" "$@"',
  ]
  const pairs = [...Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  const drop = ['setpriv', '--reuid', User, '--regid', User, '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const args = ['--mount', '--', 'sh', '-euc', steps.join('\n'), 'sh', ...drop]
  return [...args, 'env', '-i', '-C', WorkingDir, ...pairs, ...command]
}

test.skipIf(image === undefined || debianPrograms === undefined)(
  'the image starts as its user on a read-only root, migrates, takes payments, is healthy and stops in order',
  async () => {
    const config = JSON.parse(readFileSync(inspected ?? '', 'utf8')) as {
      readonly Docker: { readonly config: Settings }
    }
    const settings = config.Docker.config
    const place = aDeployedPlace()
    stops.push(place.remove)
    const database = await place.server('postgres_1')
    await database.start()
    database.run(
      `psql --username postgres --command "alter system set synchronous_standby_names = ''" --command 'select pg_reload_conf()'`,
    )
    const chain = await startChain({ network: 'base-sepolia' })
    stops.push(() => chain.stop())
    const [port, metricsPort] = [await aFreePort(), await aFreePort()]
    const env = {
      ...{ DATABASE_URL: place.url(database.port), DATABASE_DURABILITY: 'single', FILES_DIR: '/var/lib/purser/files' },
      ...{ BASE_URL: 'https://pay.example.com', DASHBOARD_URL: 'https://pay.example.com/dashboard' },
      ...{ KEY_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'), RPC_URL_BASE_SEPOLIA: chain.rpcUrl },
      ...{ PORT: String(port), METRICS_PORT: String(metricsPort), STOP_DELAY_MS: '0' },
    }
    const environment = { PATH: process.env.PATH, IMAGE: image }
    const run = (...command: string[]) =>
      execFileSync('unshare', inImage(settings, env, command), { env: environment, encoding: 'utf8', stdio: 'pipe' })

    expect(run('id', '--user')).toBe('1000\n')
    expect(() => run('touch', '/purser/file')).toThrow('Read-only file system')
    expect(run('node', 'packages/server/dist/admin/main.js', 'migrate')).toContain('migrated')

    const child: ChildProcess = spawn('unshare', inImage(settings, env, settings.Entrypoint), {
      ...{ env: environment, stdio: ['ignore', 'pipe', 'inherit'] },
    })
    const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal)))
    stops.push(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const base = `http://127.0.0.1:${port}`
    await expect.poll(async () => (await fetch(`${base}/readyz`).catch(() => undefined))?.status).toBe(200)
    const { testKey } = await foundOrganisation(env.DATABASE_URL)
    const { account } = await aPayer()
    const wallet = await request(base, {
      ...{ key: testKey, method: 'POST', path: '/wallet-infra/byo-wallets' },
      body: { address: account.address, chain: 'base-sepolia', supportedTokens: ['USDC'] },
    })
    const body = verifyBody(String(wallet.body.id), 'stub_payment_1')
    const sold = await request(base, { key: testKey, method: 'POST', path: '/payments/verify', body })
    expect([wallet.status, sold.status]).toEqual([201, 200])
    for (const page of ['/dashboard/', '/docs/operations', '/docs/reference']) {
      const { status, redirected } = await fetch(`${base}${page}`)
      // A reference without a build redirects.
      expect([page, status, redirected]).toEqual([page, 200, false])
    }
    const [, ...check] = settings.Healthcheck.Test
    const own = check.map((part) => part.replace('9464', String(metricsPort)))
    run(...own)
    expect(() => run(...own.map((part) => part.replace(String(metricsPort), '1')))).toThrow()
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  },
)

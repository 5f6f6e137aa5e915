import { rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { createPurser } from '@purser/sdk'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sandboxFlaggedAddress } from '../../server/src/partners/screening/index.ts'
import { freshDatabase } from '../../server/test/database.ts'
import { removeDataDir } from '../src/data-dir.ts'
import type { DevRecord } from '../src/dev-file.ts'
import { runDev } from '../src/dev-program.ts'
import { fundNative, fundToken, nativeBalance, type ReachableChain, tokenBalance } from '../src/faucet.ts'
import { rpcHex } from '../src/rpc.ts'
import { readStartSettings } from '../src/start-settings.ts'
import { type DevChild, spawnStart, temporaryDataDir } from './dev-child.ts'

const cleanUps: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('npm start gives a running service, a valid key, funded accounts and a bridge between chains, and SIGTERM removes all of it', async () => {
  const started = start()
  const dev = await started.ready()

  expect(statSync(path.join(started.dataDir, 'dev.json')).mode & 0o777).toBe(0o600)
  expect(dev).toMatchObject({
    baseUrl: expect.stringMatching(/^http:\/\/localhost:\d+$/),
    organisationId: expect.stringMatching(/^org_/),
    apiKey: expect.stringMatching(/^svc_test_sk_/),
    walletId: expect.stringMatching(/^byw_/),
    payer: {
      address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      privateKey: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    },
  })
  expect((await fetch(`${dev.baseUrl}/readyz`)).status).toBe(200)
  expect((await fetch(`${dev.baseUrl}/docs`)).status).toBe(200)
  expect((await purserOf(dev).organisations.current()).plan).toBe('enterprise')
  expect(await payAsPrinted(started)).toMatchObject({ valid: true, amount: '0.01' })
  await screensItsWallets(dev)
  for (const name of ['base-sepolia', 'eth-sepolia'] as const) {
    const chain = chainOf(dev, name)
    expect(Number(await rpcHex(chain.rpcUrl, 'eth_chainId'))).toBe(dev.chains[name]?.chainId)
    expect(await tokenBalance(chain, 'USDC', dev.payer.address)).toBe(1_000_000_000n)
    expect(await nativeBalance(chain, dev.payer.address)).toBeGreaterThan(10n ** 18n)
  }
  await fundsAnyAddress(dev, started.dataDir)
  await bridges(dev)
  expect(started.offspring().length).toBeGreaterThanOrEqual(4)

  started.child.kill('SIGTERM')
  expect(await started.ended).toBe(0)
  expect(started.offspring()).toEqual([])
  expect(started.stderr()).toBe('')
})

/** The service clears the wallet of the start, and flags the address that the sandbox names for it, whatever the age of its list. */
async function screensItsWallets(dev: DevRecord): Promise<void> {
  const { wallets } = purserOf(dev)
  const statusOf = async (walletId: string) => (await wallets.byo.get(walletId)).amlStatus
  await expect.poll(() => statusOf(dev.walletId), { timeout: 30_000 }).toBe('clear')
  const flagged = await wallets.byo.create({ address: sandboxFlaggedAddress, chain: 'base', supportedTokens: ['USDC'] })
  await expect.poll(() => statusOf(flagged.id), { timeout: 30_000 }).toBe('flagged')
}

/** `purser dev fund` gives tokens and coin on each chain, adds to what is there, and refuses what it cannot give before it gives anything. */
async function fundsAnyAddress(dev: DevRecord, dataDir: string): Promise<void> {
  const address = privateKeyToAddress(generatePrivateKey())
  const fund = (...args: readonly string[]) => runDev(['dev', 'fund', ...args], { DATA_DIR: dataDir })
  const first = await fund(address)
  expect(first).toMatchObject({ exitCode: 0, stderr: '' })
  expect(first.stdout).toMatch(/^base-sepolia: 10 ETH\n/)
  expect(first.stdout).toMatch(/^tempo-moderato: 1000 pathUSD$/m)
  const more = await fund(
    address,
    '--network',
    'base-sepolia',
    '--token',
    'USDC',
    '--amount',
    '0.5',
    '--format',
    'json',
  )
  expect(JSON.parse(more.stdout)).toEqual({
    address,
    given: [{ network: 'base-sepolia', amount: '0.5', token: 'USDC' }],
  })
  const refused = await Promise.all([
    fund('0x12'),
    fund(address, '--network', 'base'),
    fund(address, '--token', 'DOGE'),
    fund(address, '--amount', '0.0000001'),
    runDev(['fund', address], { DATA_DIR: '/nowhere' }),
  ])
  expect(refused.map(({ exitCode, stderr }) => [exitCode, stderr.split('\n')[0]])).toEqual([
    [2, '0x12 is not an address: give 0x and 40 hexadecimal digits.'],
    [2, 'npm start runs no chain base: use one of base-sepolia, eth-sepolia, tempo-moderato.'],
    [2, expect.stringMatching(/^base-sepolia has no token DOGE: it has /)],
    [2, '--amount 0.0000001 is not usable: give a number above 0, with at most 6 decimals.'],
    [2, '/nowhere/dev.json names no chain. Run npm start, and set DATA_DIR here if you set it there.'],
  ])
  const chain = chainOf(dev, 'base-sepolia')
  expect(await tokenBalance(chain, 'USDC', address)).toBe(1_000_500_000n)
  expect(await nativeBalance(chain, address)).toBe(10n ** 19n)
}

/** A managed wallet bridges to another chain, and the money is paid out there. */
async function bridges(dev: DevRecord): Promise<void> {
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${dev.apiKey}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${dev.baseUrl}/wallet-infra/${path}`, { method, headers, ...sent })
    return z.looseObject({ id: z.string() }).parse(await response.json())
  }
  const master = await call('POST', 'master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  const { address } = z.object({ address: z.templateLiteral(['0x', z.string()]) }).parse(master)
  await fundNative(chainOf(dev, 'base-sepolia'), address, 10n ** 18n)
  await fundToken(chainOf(dev, 'base-sepolia'), 'USDC', address, 9_000_000n)
  const toAddress = privateKeyToAddress(generatePrivateKey())
  const bridge = { fromToken: 'USDC', toChain: 'ethereum', toToken: 'USDC', amount: '9', toAddress }
  const transfer = await call('POST', 'transfer', { fromWalletId: master.id, ...bridge })
  expect(transfer).toMatchObject({ status: 'pending', route: 'partner-bridge' })
  const shown = () => call('GET', `transfers/${transfer.id}`)
  await expect.poll(shown, { timeout: 60_000 }).toMatchObject({ status: 'confirmed', toAmount: '8.991' })
  expect(await tokenBalance(chainOf(dev, 'eth-sepolia'), 'USDC', toAddress)).toBe(8_991_000n)
}

test('starting again after kill -9 finds the same organisation, key, wallet, payer, payments and balances', async () => {
  const dataDir = newDataDir('closed')
  const first = start({ DATA_DIR: dataDir })
  const dev = await first.ready()
  const { paymentId } = await payAsPrinted(first)
  await fundToken(chainOf(dev, 'base-sepolia'), 'USDC', dev.payer.address, 7n)
  first.child.kill('SIGKILL')
  await first.ended

  const second = start({ DATA_DIR: dataDir })
  const found = await second.ready()
  const { baseUrl: _, dashboardUrl: __, signInUrl: ___, chains: ____, ...same } = dev
  expect(found).toMatchObject(same)
  expect(found.signInUrl).not.toBe(dev.signInUrl)
  expect(await tokenBalance(chainOf(found, 'base-sepolia'), 'USDC', dev.payer.address)).toBe(1_000_000_007n)
  const logs = await purserOf(found).payments.logs.list().toArray({ limit: 10 })
  expect(logs.map((log) => log.paymentId)).toEqual([paymentId])
  await stopped(second)
})

test('with DATABASE_URL no PostgreSQL is started; a taken port is reported, and the next free one is used', async () => {
  const taken = await takePort()
  const started = start({ ...(await lightEnv()), PORT: String(taken) })
  const dev = await started.ready()
  expect(dev.chains).toEqual({})
  expect(started.stdout()).toContain(`Port ${taken} is taken`)
  expect(Number(new URL(dev.baseUrl).port)).toBeGreaterThan(taken)
  expect((await fetch(`${dev.baseUrl}/healthz`)).status).toBe(200)
  expect(await payAsPrinted(started)).toMatchObject({ valid: true })
  expect(started.offspring()).toEqual([])
  await stopped(started)
})

test('a second start on a data directory in use is refused in one sentence; one without dev.json gets a new key of the same organisation', async () => {
  const env = await lightEnv()
  const first = start(env)
  const dev = await first.ready()
  const second = start(env)
  expect(await second.ended).toBe(1)
  expect(second.stderr()).toMatch(/^Purser did not start: .*data is in use by another running process\. .*\n$/)
  expect((await fetch(`${dev.baseUrl}/readyz`)).status).toBe(200)
  await stopped(first)
  rmSync(path.join(env.DATA_DIR, 'dev.json'))

  const third = start(env)
  const found = await third.ready()
  expect(found).toMatchObject({ organisationId: dev.organisationId, walletId: dev.walletId })
  expect(found.apiKey).not.toBe(dev.apiKey)
  expect(await payAsPrinted(third)).toMatchObject({ valid: true })
  await stopped(third)
})

test('a start that fails prints the reason in one sentence and leaves nothing running', async () => {
  // Port 1: a free port that was released could be another test's by now, which responds.
  const started = start({ DATABASE_URL: 'postgres://dev:secret@127.0.0.1:1/purser' })
  expect(await started.ended).toBe(1)
  expect(started.stderr()).toMatch(/^Purser did not start: [^\n]*ECONNREFUSED[^\n]*\n$/)
  expect(started.stderr()).not.toContain('secret')
  expect(started.offspring()).toEqual([])
})

test('one Ctrl-C that npm and the terminal both send counts once: the stop is in order', async () => {
  const started = start(await lightEnv())
  await started.ready()
  started.child.kill('SIGINT')
  await started.printed('Stopping')
  started.child.kill('SIGINT')
  expect(await started.ended).toBe(0)
})

test('SIGTERM in the middle of a start ends it with 0 and leaves nothing running', async () => {
  const started = start()
  await started.printed('Starting Purser')
  await stopped(started)
  expect(started.stdout()).not.toContain('Purser is running')
})

test.each([
  [{ PORT: 'http' }, 'PORT'],
  [{ PORT: '65536' }, 'PORT'],
  [{ CHAINS: 'no' }, 'CHAINS'],
  [{ DATABASE_URL: 'localhost/purser' }, 'DATABASE_URL'],
])('a setting that is not usable is named: %j', (env, name) => {
  expect(readStartSettings(env)).toEqual({ fault: expect.stringContaining(`${name} is not usable`) })
})

test('without settings it uses port 4100, .purser, a bundled database, and chains', () => {
  const defaults = { port: 4100, dataDir: '.purser', databaseUrl: undefined, chains: true }
  expect(readStartSettings({})).toEqual(defaults)
  expect(readStartSettings({ PORT: '', DATA_DIR: '', DATABASE_URL: '', CHAINS: '' })).toEqual(defaults)
})

function newDataDir(parent: 'closed' | 'open' = 'open'): string {
  const dataDir = temporaryDataDir(parent)
  cleanUps.push(() => {
    removeDataDir(dataDir)
    rmSync(path.dirname(dataDir), { recursive: true, force: true })
  })
  return dataDir
}

/** Without chains, on the database server of this test run, to start fast. */
async function lightEnv() {
  const database = await freshDatabase()
  cleanUps.push(() => database.drop())
  return { DATA_DIR: newDataDir(), DATABASE_URL: database.url, CHAINS: 'off' }
}

function start(env: Readonly<Record<string, string>> = {}): DevChild {
  const started = spawnStart({ ...env, DATA_DIR: env.DATA_DIR ?? newDataDir() })
  cleanUps.push(async () => {
    started.child.kill('SIGTERM')
    await started.ended
  })
  return started
}

async function stopped(started: DevChild): Promise<void> {
  started.child.kill('SIGTERM')
  expect(await started.ended).toBe(0)
  expect(started.offspring()).toEqual([])
}

/** Sends what the printed curl sends. */
async function payAsPrinted(started: DevChild): Promise<Record<string, unknown>> {
  const printed = started.stdout()
  const url = /curl -s (\S+)/.exec(printed)?.[1] ?? ''
  const headers = [...printed.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name = '', value = '']): [string, string] => [
    name,
    value,
  ])
  const body = /-d '([^']+)'/.exec(printed)?.[1] ?? ''
  const response = await fetch(url, { method: 'POST', headers, body })
  return { ...(await response.json()) }
}

/** Listens on a port until the test is over. */
async function takePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => new Promise((resolve) => server.close(resolve)))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function purserOf({ apiKey, baseUrl }: DevRecord) {
  return createPurser({ apiKey, baseUrl })
}

function chainOf({ chains }: DevRecord, network: 'base-sepolia' | 'eth-sepolia'): ReachableChain {
  const { rpcUrl = '', tokens = {} } = chains[network] ?? {}
  return { network, rpcUrl, tokens }
}

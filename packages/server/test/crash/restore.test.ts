import { fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { createTestClient, http, publicActions, walletActions } from 'viem'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { loadDump, takeDump } from '../logical-dump.ts'
import { createFakeScreening } from '../screening-double.ts'
import { bodyFrom, type Managed, stranger, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, codeOf, request } from '../world.ts'
import { aRestartablePostgres } from './restartable-postgres.ts'

const patient = { timeout: 60_000, interval: 100 }
const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

/** A database that can be copied and restored while no process of the service runs. */
interface Copyable {
  readonly database: TestDatabase
  /** Returns the function that restores the copy. */
  copy(): Promise<() => Promise<void>>
}

async function withFolders(): Promise<Copyable> {
  const postgres = await aRestartablePostgres()
  const db = openDb({ url: postgres.url, connectionsMax: 4, log: createLog({ level: 'silent' }) })
  const database: TestDatabase = {
    ...{ db, url: postgres.url },
    async drop() {
      await db.close()
      await postgres.remove()
    },
  }
  return {
    database,
    async copy() {
      await postgres.end('stop')
      const putBack = postgres.copy()
      await postgres.start()
      return async () => {
        await postgres.end('stop')
        putBack()
        await postgres.start()
      }
    },
  }
}

async function withDumps(): Promise<Copyable> {
  const database = await freshDatabase({ plans: 'general' })
  return {
    database,
    async copy() {
      const dump = await takeDump(database.url)
      return () => loadDump(database.url, dump)
    },
  }
}

function recover({ url }: Deployment, of: Managed, address: string) {
  const args = ['admin', 'recover-child', '--wallet', of.id, '--address', address, '--format', 'json']
  return runAdmin(args, { DATABASE_URL: url })
}

/** A deployment on one chain, whose process a test stops and starts. */
async function aDeployment({ database }: Copyable) {
  const dev = await startChain({ network: 'base' })
  cleanups.push(() => dev.stop())
  const world = await aWorld({
    ...{ chains: [dev], database },
    config: { transferWaitMs: 0 },
    boot: { screening: createFakeScreening(() => new Date()), depositPollMsMax: 200 },
  })
  cleanups.push(() => world.stop())
  const { liveKey: key } = await world.organisation()
  let { server, base } = world
  const chain = createTestClient({ mode: 'anvil', transport: http(dev.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions)
  const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
    request(base, { key, method, path, body })
  return {
    dev,
    chain,
    call,
    database: world.database,
    files: 'directory' in world.config.files ? world.config.files.directory : '',
    url: database.url,
    stop: () => server.stop(),
    async start() {
      ;({ server, base } = await world.another())
    },
    ready: () =>
      fetch(`${base}/readyz`).then(async (response) => ({ status: response.status, body: await response.json() })),
    balance: (of: string) => tokenBalance(dev, 'USDC', of as `0x${string}`),
  }
}

type Deployment = Awaited<ReturnType<typeof aDeployment>>

const masters = '/wallet-infra/master-wallets'

async function aMaster({ call, dev, database }: Deployment): Promise<Managed> {
  const { body } = await call('POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as `0x${string}` }
  await fundNative(dev, master.address, 10n ** 18n)
  await fundToken(dev, 'USDC', master.address, 100_000_000n)
  await untilBooked({ database }, dev)
  return master
}

async function aChild({ call }: Deployment, of: Managed): Promise<Managed> {
  const { status, body } = await call('POST', `${masters}/${of.id}/child-addresses`, {})
  expect([status, body.type]).toEqual([201, undefined])
  return { id: String(body.id), address: body.address as `0x${string}` }
}

async function begin({ call }: Deployment, body: unknown): Promise<string> {
  const sent = await call('POST', '/wallet-infra/transfer', body)
  expect([sent.status, sent.body.type]).toEqual([201, undefined])
  return String(sent.body.id)
}

async function untilSent({ call, chain }: Deployment, id: string): Promise<`0x${string}`> {
  let hash: unknown
  const isKnown = async (): Promise<boolean> => {
    hash = (await call('GET', `/wallet-infra/transfers/${id}`)).body.txHash
    if (hash === null) return false
    return (await chain.getTransaction({ hash: hash as `0x${string}` }).catch(() => undefined)) !== undefined
  }
  await expect.poll(isKnown, patient).toBe(true)
  return hash as `0x${string}`
}

async function mineUntil({ chain }: Deployment, isSo: () => Promise<boolean>): Promise<void> {
  const reached = async (): Promise<boolean> => {
    await chain.mine({ blocks: 1 })
    return isSo()
  }
  await expect.poll(reached, patient).toBe(true)
}

async function mineUntilConfirmed(deployment: Deployment, id: string): Promise<Answer['body']> {
  const read = async () => (await deployment.call('GET', `/wallet-infra/transfers/${id}`)).body
  await mineUntil(deployment, async () => (await read()).status !== 'pending')
  await deployment.chain.mine({ blocks: 12 })
  return read()
}

test.each([
  ['a copied data folder', withFolders],
  ['a logical dump', withDumps],
])(
  '%s restored in the middle of a day’s work loses no money and moves none twice',
  { timeout: 240_000 },
  async (_, make) => {
    const copyable = await make()
    const day = await aDeployment(copyable)
    const { chain, call, balance } = day
    const master = await aMaster(day)
    const known = await aChild(day, master)
    await mineUntilConfirmed(day, await begin(day, bodyFrom(master, { amount: '1' })))
    await chain.setAutomine(false)
    // Pending when the copy is taken, and mined after it.
    const underWay = bodyFrom(master, { amount: '2' })
    const underWayId = await begin(day, underWay)
    const underWayHash = await untilSent(day, underWayId)
    await day.stop()
    const restore = await copyable.copy()
    await day.start()

    // What the restore loses: an address, a final transfer, a transfer that waits for a block, and a deposit.
    await mineUntilConfirmed(day, underWayId)
    const alice = await aChild(day, master)
    const final = bodyFrom(master, { amount: '10' })
    const finalHash = (await mineUntilConfirmed(day, await begin(day, final))).txHash
    await chain.setAutomine(true)
    await fundToken(day.dev, 'USDC', known.address, 7_000_000n)
    await fundToken(day.dev, 'USDC', alice.address, 5_000_000n)
    await chain.setAutomine(false)
    await chain.mine({ blocks: 12 })
    const waiting = bodyFrom(master, { amount: '20' })
    const waitingHash = await untilSent(day, await begin(day, waiting))
    await day.stop()
    await restore()
    await day.start()

    const sentBefore = await chain.getTransactionCount({ address: master.address, blockTag: 'pending' })
    const stopped = await day.ready()
    expect([stopped.status, stopped.body]).toMatchObject([503, { database: 'behind' }])
    expect(JSON.stringify(stopped.body)).toContain('purser admin restored')
    for (const [path, body] of [
      [`${masters}/${master.id}/child-addresses`, {}],
      [masters, { chain: 'base', supportedTokens: ['USDC'] }],
      ['/wallet-infra/transfer', bodyFrom(master)],
    ] as const) {
      const refused = await call('POST', path, body)
      expect([path, refused.status, codeOf(refused)]).toEqual([path, 503, 'service-unavailable'])
    }
    expect(await chain.getTransactionCount({ address: master.address, blockTag: 'pending' })).toBe(sentBefore)
    expect((await call('GET', `${masters}/${master.id}`)).status).toBe(200)

    const ran = await runAdmin(['admin', 'restored'], { DATABASE_URL: day.url, FILES_DIR: day.files })
    expect([ran.exitCode, ran.stderr]).toEqual([0, ''])
    await expect.poll(async () => (await day.ready()).status, patient).toBe(200)
    expect((await aChild(day, master)).address).not.toBe(alice.address)
    // Alice still has the address that the database lost. With its record restored, her deposit is booked.
    const recovered = await recover(day, master, alice.address)
    expect(recovered.exitCode).toBe(0)
    expect((await recover(day, master, alice.address)).exitCode).toBe(1)
    expect((await recover(day, master, stranger())).exitCode).toBe(1)

    // A lost transaction that waited for a block is replaced by one that does nothing, before anything new is planned.
    const isWaiting = () => chain.getTransaction({ hash: waitingHash }).then(Boolean, () => false)
    await expect.poll(isWaiting, patient).toBe(false)
    const early = await call('POST', '/wallet-infra/transfer', bodyFrom(master))
    expect([early.status, codeOf(early)]).toEqual([503, 'service-unavailable'])

    const next = bodyFrom(master, { amount: '3' })
    let nextId = ''
    await mineUntil(day, async () => {
      const sent = await call('POST', '/wallet-infra/transfer', next)
      expect([201, 503]).toContain(sent.status)
      nextId = String(sent.body.id)
      return sent.status === 201
    })
    expect(await mineUntilConfirmed(day, nextId)).toMatchObject({ status: 'confirmed' })
    await chain.mine({ blocks: 12 })
    const wentOn = (await call('GET', `/wallet-infra/transfers/${underWayId}`)).body
    expect(wentOn).toMatchObject({ status: 'confirmed', txHash: underWayHash })
    const to = [underWay, final, waiting, next].map(({ toAddress }) => balance(toAddress))
    expect(await Promise.all(to)).toEqual([2_000_000n, 10_000_000n, 0n, 3_000_000n])
    const hashesOf = async (of: string): Promise<unknown[]> =>
      (await call('GET', `${of}/transactions`)).list.map(({ txHash }) => txHash)
    await expect.poll(() => hashesOf(`${masters}/${master.id}`), patient).toContain(finalHash)
    await expect
      .poll(async () => (await hashesOf(`${masters}/${master.id}/child-addresses/${known.id}`)).length, patient)
      .toBe(1)
    await chain.setAutomine(true)
    await fundToken(day.dev, 'USDC', alice.address, 4_000_000n)
    const aliceId = z.object({ childAddressId: z.string() }).parse(JSON.parse(recovered.stdout)).childAddressId
    const atAlice = async () =>
      (await call('GET', `${masters}/${master.id}/child-addresses/${aliceId}/transactions`)).list
    await expect.poll(async () => (await atAlice()).map(({ amount }) => amount), patient).toEqual(['4'])
    // What she received before her record was there has no deposit, so nobody has screened its sender: it is on hold.
    const fromAlice = (amount: string) =>
      call('POST', '/wallet-infra/transfer', bodyFrom({ ...alice, id: aliceId }, { amount }))
    const all = async () => {
      await chain.mine({ blocks: 1 })
      const { status, body } = await fromAlice('9')
      return [status, body.balances]
    }
    const short = { token: 'USDC', required: '9', available: '4', held: '5' }
    await expect.poll(all, patient).toEqual([422, [short]])
    expect((await fromAlice('4')).status).toBe(201)
  },
)

test('a database that lost nothing continues by itself, whichever server it is on', { timeout: 120_000 }, async () => {
  const copyable = await withFolders()
  const day = await aDeployment(copyable)
  const master = await aMaster(day)
  await mineUntilConfirmed(day, await begin(day, bodyFrom(master, { amount: '1' })))
  // The process keeps running while its database moves, as in a promotion.
  const promote = await copyable.copy()
  await promote()
  await expect.poll(async () => (await day.ready()).status, patient).toBe(200)
  await aChild(day, master)
  const body = bodyFrom(master, { amount: '2', toAddress: stranger() })
  expect(await mineUntilConfirmed(day, await begin(day, body))).toMatchObject({ status: 'confirmed' })
  expect(await day.balance(body.toAddress)).toBe(2_000_000n)
})

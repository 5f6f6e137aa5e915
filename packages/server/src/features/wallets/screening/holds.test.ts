import { randomBytes } from 'node:crypto'
import { type Address, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ShiftedClock } from '../../../../test/webhooks/clock.ts'
import { aWorld, type Org, type World } from '../../../../test/world.ts'
import { createFakeScreening, type FakeScreening } from '../../../partners/screening/index.ts'
import type { Screened } from '../../../partners/screening/port.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { book } from '../deposits/store-scan.ts'
import { amountsOnHold } from './deposit-store.ts'
import { screeningRecurring } from './jobs.ts'

const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
const nobodyKnows: Screened = { result: 'pending', reason: 'list-stale', oracle: 'failed' }
const network = networkByName('base-sepolia')
const usdc = network && tokenBySymbol(network, 'USDC')?.address
if (network === undefined || usdc === undefined) throw new Error('no USDC')
const place = { network: network.name, token: usdc } as const

let world: World
let org: Org
let clock: ShiftedClock
let screening: FakeScreening
let block = 1n

beforeAll(async () => {
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  world = await aWorld({ config: { role: 'api' }, boot: { clock, screening } })
  org = await world.organisation()
})
afterAll(() => world?.stop())

interface Wallet {
  readonly id: string
  readonly address: Address
}

const masters = '/wallet-infra/master-wallets'
const aSender = (): Address => `0x${randomBytes(20).toString('hex')}`

async function made(path: string, body: unknown): Promise<Wallet> {
  const answer = await world.call(org.testKey, 'POST', path, body)
  return { id: String(answer.body.id), address: answer.body.address as Address }
}

async function aFamily(): Promise<{ readonly master: Wallet; readonly child: Wallet }> {
  const master = await made(masters, { chain: 'base', supportedTokens: ['USDC'] })
  return { master, child: await made(`${masters}/${master.id}/child-addresses`, {}) }
}

/** Books a transfer as the watcher does, in a block of its own. */
async function booked(from: Address, to: Address, rawAmount: bigint): Promise<void> {
  const { deps } = world.server
  block += 1n
  const hash = `0x${randomBytes(32).toString('hex')}` as const
  const lower = (address: Address): Address => `0x${address.slice(2).toLowerCase()}`
  const transfer = {
    token: lower(place.token),
    from: lower(from),
    to: lower(to),
    rawAmount,
    txHash: hash,
    logIndex: 0,
    blockNumber: block,
    blockHash: hash,
  }
  const headers = [{ number: block, timestampSeconds: BigInt(Math.ceil(clock.now().getTime() / 1_000)) }]
  if (network === undefined) throw new Error('no network')
  await deps.db.tx((tx) => book(deps, tx, network, { headers, transfers: [transfer], countsEarlier: true }))
}

async function onHold({ id }: Wallet): Promise<{ readonly frozen: bigint; readonly unscreened: bigint }> {
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const [amount] = await amountsOnHold(world.database.db, [{ tenant, walletId: id, ...place }])
  return { frozen: amount?.frozen ?? -1n, unscreened: amount?.unscreened ?? -1n }
}

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

async function listNow(address: Address): Promise<void> {
  screening.say(address, listed)
  screening.swapList([address.toLowerCase()])
  await screenWhatIsDue()
}

const events = async (type: string) =>
  (await world.call(org.testKey, 'GET', `/events?type=${type}`)).list.map((event) => event.payload)

test.each([true, false])(
  'a listed deposit is frozen when it is booked, whether the list is stale (%s)',
  async (isStale) => {
    screening.isStale = isStale
    const [{ child }, bad] = [await aFamily(), aSender()]
    screening.say(bad, listed)
    await booked(bad, child.address, 5n)
    expect(await onHold(child)).toEqual({ frozen: 5n, unscreened: 0n })
    await booked(aSender(), child.address, 7n)
    expect(await onHold(child)).toEqual({ frozen: 5n, unscreened: 0n })
    screening.isStale = false
  },
)

test('a deposit whose sender nobody can judge is on hold without a time limit', async () => {
  const [{ child }, unknown] = [await aFamily(), aSender()]
  screening.say(unknown, nobodyKnows)
  await booked(unknown, child.address, 5n)
  clock.forward(3_600_000)
  await screenWhatIsDue()
  expect(await onHold(child)).toEqual({ frozen: 0n, unscreened: 5n })
})

test('money that was swept before its sender was listed is frozen at the master, and later honest money is free', async () => {
  const [{ master, child }, bad] = [await aFamily(), aSender()]
  await booked(bad, child.address, 5n)
  await booked(child.address, master.address, 5n)
  await listNow(bad)
  expect([(await onHold(child)).frozen, (await onHold(master)).frozen]).toEqual([0n, 5n])
  await booked(aSender(), child.address, 5n)
  await booked(aSender(), master.address, 3n)
  expect([(await onHold(child)).frozen, (await onHold(master)).frozen]).toEqual([0n, 5n])
})

test('money that the master spent before its sender was listed freezes nothing', async () => {
  const [{ master, child }, bad] = [await aFamily(), aSender()]
  await booked(bad, child.address, 5n)
  await booked(child.address, master.address, 5n)
  await booked(master.address, aSender(), 5n)
  await listNow(bad)
  await booked(aSender(), child.address, 5n)
  await booked(aSender(), master.address, 5n)
  expect([(await onHold(child)).frozen, (await onHold(master)).frozen]).toEqual([0n, 0n])
})

test('a flag and its end are announced once each, also for a deposit that was frozen when it was booked', async () => {
  const [{ child }, bad] = [await aFamily(), aSender()]
  screening.say(bad, listed)
  await booked(bad, child.address, 5n)
  await screenWhatIsDue()
  await screenWhatIsDue()
  const own = (payloads: readonly unknown[]) => payloads.filter((payload) => Object(payload).walletId === child.id)
  expect(own(await events('wallet.flagged'))).toMatchObject([{ walletId: child.id, reason: 'listed' }])
  screening.say(bad, { result: 'clear', reason: 'clean', oracle: 'clean' })
  screening.swapList([bad.toLowerCase()])
  await screenWhatIsDue()
  expect(own(await events('wallet.cleared'))).toMatchObject([{ walletId: child.id }])
  expect((await onHold(child)).frozen).toBe(0n)
})

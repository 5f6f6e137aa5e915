import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { networkByName } from '@purser/protocol'
import { type Address, createTestClient, http } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { gasOfTempoTransfer } from '../../src/features/wallets/sweep/sweeps.ts'
import { sweepOnTempo } from '../../src/features/wallets/sweep/tempo.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { runOnce } from '../run-once.ts'
import { aFamily, childrenOf, sweep } from '../sweep-stage.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { aWorld, type Org, type World } from '../world.ts'

const of = { chain: 'tempo', token: 'AlphaUSD' } as const
const body = { token: 'AlphaUSD' } as const

let tempo: DevChain
let node: LyingNode
let world: World
let org: Org
let clock: ShiftedClock

beforeAll(async () => {
  tempo = await startChain({ network: 'tempo-moderato' })
  node = await startLyingNode(tempo.rpcUrl)
  // Blocks without transactions bring the base fee to its minimum, where it stays.
  await createTestClient({ mode: 'anvil', transport: http(tempo.rpcUrl) }).mine({ blocks: 512 })
})
afterAll(async () => {
  await node?.stop()
  await tempo?.stop()
})
/** A test runs each attempt here, and nothing is sent. */
beforeEach(async () => {
  clock = new ShiftedClock()
  world = await aWorld({
    chains: [tempo],
    rpcUrls: { 'tempo-moderato': [node.url] },
    config: { role: 'api' },
    boot: { clock },
  })
  org = await world.organisation()
  return async () => {
    node.tellTheTruth()
    await world.stop()
  }
})

const turn = () => runOnce(world.server.deps, sweepOnTempo)

/** A family, with the child that is tried first in front. */
async function inTurn(count: number, owner = org) {
  const family = await aFamily(world, owner, tempo, { count, of })
  return { family, children: family.children.toSorted((left, right) => (left.id < right.id ? -1 : 1)) }
}

async function addressesIn(status: string): Promise<string[]> {
  const statement = sql`select from_address from sweep_transfers where status = ${status} order by child_address_id`
  const rows = await world.database.db.many(z.object({ fromAddress: z.string() }), statement)
  return rows.map(({ fromAddress }) => fromAddress)
}

/** Funds this many sweep fees, and half of another. */
async function fundSponsor(fees: bigint): Promise<void> {
  const network = networkByName('tempo-moderato')
  if (network === undefined) throw new Error('no such network')
  const { maxFee } = await world.server.deps.chains.on(network).offeredFees()
  const cost = (gasOfTempoTransfer * maxFee * 2n) / 10n ** 12n + 1n
  await fundToken(tempo, 'pathUSD', world.server.settlerAddress as Address, cost * fees + cost / 2n)
}

test('a transfer that fails at every attempt lets the others be tried, also where the operator can pay for one at a time', async () => {
  const { family, children } = await inTurn(3)
  const [sick, ...healthy] = children.map(({ address }) => address)
  await fundSponsor(1n)
  // Another sender seems to have used the account: no lane begins until that is settled.
  node.lie('eth_getTransactionCount', ({ params, truth }) =>
    String(params[0]).toLowerCase() === sick?.toLowerCase() ? { result: '0x1' } : truth(),
  )
  expect((await sweep(world, org, family, body)).status).toBe(202)
  await turn()
  expect([await addressesIn('planned'), await addressesIn('sent')]).toEqual([[sick, ...healthy], []])
  await turn()
  expect([await addressesIn('planned'), await addressesIn('sent')]).toEqual([[sick, healthy[1]], [healthy[0]]])
  await fundSponsor(1n)
  await turn()
  expect([await addressesIn('planned'), await addressesIn('sent')]).toEqual([[sick], healthy])
  node.tellTheTruth()
  await fundSponsor(1n)
  await turn()
  expect(await addressesIn('sent'), 'it is tried until it expires').toEqual([sick, ...healthy])
})

test('one transfer of each account comes before the second of another, however old those of the other are', async () => {
  const [own, second, other] = [org, await world.organisation(), await world.organisation()]
  const [first, beside, last] = [await inTurn(3, own), await inTurn(1, second), await inTurn(1, other)]
  await world.database.db.run(sql`
    update organisations set plan = 'hobby', quota_account_id = (select quota_account_id from organisations where id = ${own.id})
    where id = any(${[own.id, second.id]}::text[])`)
  await fundSponsor(2n)
  for (const [owner, { family }] of [
    [own, first],
    [second, beside],
    [other, last],
  ] as const)
    expect((await sweep(world, owner, family, body)).status).toBe(202)
  await turn()
  expect(await addressesIn('sent')).toEqual([first.children[0]?.address, last.children[0]?.address])
})

test('a transfer that cannot be ended blocks neither the end nor the sending of those behind it', async () => {
  const { family, children } = await inTurn(2)
  const [sick, healthy] = children.map(({ address }) => address)
  await fundSponsor(5n)
  await world.database.db.run(sql`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`)
  await world.database.db.run({
    text: `create trigger refused before update of status on sweep_transfers for each row when (new.from_address = '${sick}') execute function refuse()`,
    values: [],
  })
  const requested = await sweep(world, org, family, body)
  clock.forward(86_400_001)
  const late = await inTurn(1)
  await sweep(world, org, late.family, body)
  await turn()
  const { children: reported } = await childrenOf(world, org, family, requested.body.id)
  expect(reported.find(({ childAddressId }) => childAddressId === children[1]?.id)).toMatchObject({
    status: 'failed',
    reason: 'authorization-expired',
  })
  expect([await addressesIn('failed'), await addressesIn('sent')]).toEqual([[healthy], [late.children[0]?.address]])
})

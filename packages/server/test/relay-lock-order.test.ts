import type { Address, Hex } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { MinedTransaction } from '../src/chain/port.ts'
import { changeGasLast, dayOf } from '../src/features/plans/index.ts'
import { relayHandler } from '../src/features/relayer/index.ts'
import { sql, type Tx } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { freshDatabase } from './database.ts'
import { relayerParts } from './relay-stage.ts'
import { aStage, type Stage } from './sim/stage.ts'
import { logsOfMove } from './sim/token.ts'

/** Code that ends relays of several kinds at once locks in one order, so that it never deadlocks. */
let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
  // The test locks sweeps and payments, whatever wallets they belong to.
  await stage.db.run(sql`alter table sweeps drop constraint sweeps_master_wallet_id_fkey`)
  await stage.db.run(sql`alter table sweep_transfers drop constraint sweep_transfers_child_address_id_fkey`)
})
beforeEach(async () => {
  await stage.clear()
})
afterAll(() => stage?.stop())

const account = (name: string): Address => `0x${name.repeat(40)}`
const payTo = account('d')

interface Relayed {
  readonly subjectId: string
  readonly purpose: 'payments' | 'wallets.sweeps'
  readonly authorization: {
    readonly from: Address
    readonly to: Address
    readonly value: bigint
    readonly validBefore: bigint
    readonly nonce: Hex
  }
}

function relayed(purpose: Relayed['purpose'], subjectId: string, name: string): Relayed {
  const nonce: Hex = `0x${name.repeat(64)}`
  return {
    purpose,
    subjectId,
    authorization: { from: account(name), to: payTo, value: 1n, validBefore: 9n ** 9n, nonce },
  }
}

const organisationId = () => stage.tenants[0]?.organisationId ?? newId('org', stage.deps)

/** A transaction in a final block with these relays. */
async function mined(nonce: number, carried: readonly Relayed[]): Promise<MinedTransaction> {
  const { db, deps, network } = stage
  const id = newId('ctx', deps)
  const hash: Hex = `0x${String(nonce).repeat(64)}`
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values (${id}, ${network.name}, ${account('e')}, ${nonce}, ${payTo}, '\\x', 0, 1, 'relays', 'sent', now())`)
  const token = network.tokens[0]?.address ?? payTo
  for (const { purpose, subjectId, authorization } of carried) {
    const { from, to, value, validBefore, nonce: own } = authorization
    const payload = {
      ...{ kind: 'eip3009', token, from, to, nonce: own, deployment: null, value: String(value), validAfter: '0' },
      ...{ validBefore: String(validBefore), signature: { kind: 'ecdsa', v: 27, r: own, s: own } },
    }
    await db.run(sql`
      insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
        transaction_id, attempts, created_at)
      values (${network.name}, ${purpose}, ${subjectId}, ${organisationId()}, 'test', ${from}, ${token.toLowerCase()}, ${own},
        ${JSON.stringify(payload)}, now() + interval '1 hour', false, 'included', ${id}, 1, now())`)
  }
  const logs = carried.flatMap(({ authorization }) =>
    logsOfMove({ token }, authorization).map(({ address, topics, data }) => {
      return { address: address as Address, topics: topics as Hex[], data: data as Hex }
    }),
  )
  const cost = { gasUsed: 60_000n, effectiveGasPrice: 1n, l1Fee: 0n }
  const receipt = { transactionHash: hash, status: 'success' as const, blockNumber: 1n, blockHash: hash, logs, ...cost }
  return { transaction: { id, network: network.name, purpose: 'relays', nonce: BigInt(nonce), hash }, receipt }
}

/** A sweep of one child whose transfer is sent. */
async function aSweep(id: string, name: string): Promise<Relayed> {
  const { db, network } = stage
  await db.run(sql`
    insert into sweeps (id, organisation_id, environment, master_wallet_id, chain, network, token, decimals, trigger, is_partial, status, created_at)
    values (${id}, ${organisationId()}, 'test', 'mwt_1', 'ethereum', ${network.name}, 'USDC', 6, 'request', false, 'sweeping', now())`)
  const childId = id.replace('swp', 'cad')
  await db.run(sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, status, created_at, gas_reserved_nano_usd)
    values (${id}, ${childId}, ${organisationId()}, 'test', ${network.name}, '0x1', ${account(name)}, ${payTo}, 1, 0, ${Buffer.alloc(32, name)},
      now() + interval '1 hour', 'sent', now(), 5)`)
  return relayed('wallets.sweeps', `${id} ${childId}`, name)
}

async function aPayment(name: string): Promise<Relayed> {
  const { db, deps, network } = stage
  const id = newId('pay', deps)
  await db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, chain, network, token, asset, decimals, raw_amount, pay_to,
      status, gas_reserved_nano_usd, created_at)
    values (${id}, ${newId('plog', deps)}, ${organisationId()}, 'test', 'key_1', 'x402', 'ethereum', ${network.name}, 'USDC', '0x1', 6, 1, ${payTo},
      'settling', 5, now())`)
  return relayed('payments', id, name)
}

const isWaiting = async (): Promise<boolean> => (await stage.countLocked()) > 0

/**
 * Ends what these transactions carried while another session has this sweep locked and then needs the organisation's gas
 * budget and its log.
 */
async function endBeside(sweepId: string, all: readonly MinedTransaction[]): Promise<void> {
  const { db, deps, network } = stage
  const tenant = { organisationId: organisationId(), environment: 'test' as const }
  const handler = relayHandler(relayerParts(deps, 6_000))
  let ending: Promise<void> | undefined
  await db.tx(async (tx: Tx) => {
    await tx.run(sql`select 1 from sweeps where id = ${sweepId} for update`)
    ending = db.tx((other) => handler.onFinal(other, all))
    ending.catch(() => undefined)
    await expect.poll(isWaiting, { interval: 20 }).toBe(true)
    changeGasLast(tx, [{ tenant, network: network.name, day: dayOf(deps.clock.now()), nanoUsd: 1n }])
    await tx.run(sql`select 1 from audit_heads where organisation_id = ${tenant.organisationId} for update`)
  })
  await ending
}

async function statesOf(): Promise<string[]> {
  const rows = await stage.db.many(
    z.object({ row: z.string() }),
    sql`select purpose || ' ' || state as row from relays order by purpose, id`,
  )
  return rows.map(({ row }) => row)
}

const ids = ['swp_01jd00000000000000000000aa', 'swp_01jd00000000000000000000bb'] as const

test('a payment and a sweep in one transaction end while the sweep ends elsewhere', async () => {
  const both = await mined(1, [await aPayment('a'), await aSweep(ids[0], 'b')])
  await endBeside(ids[0], [both])
  expect(await statesOf()).toEqual(['payments settled', 'wallets.sweeps settled'])
})

test('sweeps of one organisation in two transactions end while one of them ends elsewhere', async () => {
  const first = await mined(1, [await aSweep(ids[1], 'b')])
  const second = await mined(2, [await aSweep(ids[0], 'a')])
  await endBeside(ids[0], [first, second])
  expect(await statesOf()).toEqual(['wallets.sweeps settled', 'wallets.sweeps settled'])
})

test('the cost of two transactions of two kinds is counted once in the organisation’s budget', async () => {
  const both = await mined(1, [await aPayment('a'), await aSweep(ids[0], 'b')])
  const handler = relayHandler(relayerParts(stage.deps, 6_000))
  await stage.db.run(sql`delete from gas_budgets`)
  await stage.db.tx((tx) => handler.onFinal(tx, [both]))
  const { taken } = await stage.db.one(
    z.object({ taken: z.string() }),
    sql`select sum(nano_usd)::text as taken from gas_budgets`,
  )
  // 60,000 gas at a billionth of a dollar for each wei are used, and the reservations of twice 5 are released.
  const worth = stage.deps.gasPrices.worthOf(stage.network, 30_000n)
  expect(BigInt(taken)).toBe(2n * worth - 10n)
})

test('a batch that burns all of its gas is counted with all of it, the transaction’s own gas included', async () => {
  const { transaction, receipt } = await mined(1, [await aPayment('a'), await aPayment('b')])
  const gasUsed = 2n * 100_000n + 60_000n
  const handler = relayHandler(relayerParts(stage.deps, 6_000))
  const burnt = { transaction, receipt: { ...receipt, gasUsed, effectiveGasPrice: 10n ** 9n, logs: [] } }
  await stage.db.tx((tx) => handler.onFinal(tx, [burnt]))
  const { used } = await stage.db.one(
    z.object({ used: z.string() }),
    sql`select sum(gas_used_nano_usd)::text as used from payments`,
  )
  expect(BigInt(used)).toBe(gasUsed)
})

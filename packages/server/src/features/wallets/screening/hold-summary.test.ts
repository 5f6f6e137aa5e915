import { requireNetwork } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fillTable } from '../../../../test/fill-table.ts'
import {
  aHoldStage,
  aSender,
  clean,
  type HoldStage,
  listed,
  noSource,
  type Wallet,
} from '../../../../test/hold-stage.ts'
import { readBy } from '../../../../test/rows-read.ts'
import { sql } from '../../../platform/db/db.ts'
import { listHolds } from './hold-summary-store.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

async function summary(key = stage.key): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await stage.world.call(key, 'GET', '/wallet-infra/holds')
  expect(status).toBe(200)
  return body
}

async function booked(to: Wallet, raw: bigint, screened: typeof listed): Promise<void> {
  const sender = aSender()
  stage.screening.setResult(sender, screened)
  await stage.booked(sender, to, raw)
}

test('the summary has what screening keeps from leaving, by wallet and token, and nothing that can leave', async () => {
  expect(await summary()).toEqual({ wallets: 0, isWhole: true, amounts: [] })
  const [first, second, free] = [await stage.master(), await stage.master(), await stage.master()]
  const child = await stage.child(first)
  await booked(first, 3_000_000n, noSource)
  await booked(first, 4_500_000n, noSource)
  await booked(second, 7_000_000n, listed)
  await booked(second, 1_000_000n, noSource)
  await booked(child, 20_000n, noSource)
  await booked(free, 9_000_000n, clean)
  await stage.screenWhatIsDue()
  const own = { name: null, masterWalletId: null, chain: 'base', tokenSymbol: 'USDC' }
  expect(await summary()).toEqual({
    wallets: 3,
    isWhole: true,
    amounts: [
      { ...own, walletId: second.id, unscreened: '1', frozen: '7' },
      { ...own, walletId: first.id, unscreened: '7.5', frozen: '0' },
      { ...own, walletId: child.id, masterWalletId: first.id, unscreened: '0.02', frozen: '0' },
    ],
  })
  expect(await summary(stage.org.liveKey)).toEqual({ wallets: 0, isWhole: true, amounts: [] })
  expect(await summary((await stage.world.organisation()).testKey)).toEqual({ wallets: 0, isWhole: true, amounts: [] })
})

test('money that a wallet had before its token was followed is on hold until it is booked', async () => {
  const wallet = await stage.master()
  await stage.db.run(sql`
    insert into opening_amounts (wallet_id, network, token, organisation_id, environment, block_number, raw_amount)
    values (${wallet.id}, ${stage.network.name}, ${stage.usdc}, ${stage.org.id}, 'test', 1000, 6000000)`)
  const { amounts } = await summary()
  expect(amounts).toContainEqual(expect.objectContaining({ walletId: wallet.id, unscreened: '6', frozen: '0' }))
})

test('money of one wallet on other networks has the chain where it is, and a token that nobody knows is left out', async () => {
  const wallet = await stage.master()
  const polygon = requireNetwork('polygon-amoy')
  const [token] = polygon.tokens
  const places = [
    [polygon.name, token?.address],
    [polygon.name, '0x00000000000000000000000000000000000000aa'],
    ['a network of a newer process', stage.usdc],
  ]
  for (const [network, address] of places)
    await stage.db.run(sql`
      insert into opening_amounts (wallet_id, network, token, organisation_id, environment, block_number, raw_amount)
      values (${wallet.id}, ${network}, ${address}, ${stage.org.id}, 'test', 1000, 5000000)`)
  const { isWhole, amounts } = await summary()
  expect(isWhole).toBe(false)
  const onHold = z.array(z.object({ walletId: z.string(), chain: z.string() })).parse(amounts)
  expect(onHold.filter(({ walletId }) => walletId === wallet.id).map(({ chain }) => chain)).toEqual(['polygon'])
})

test('the summary of many deposits reads a bounded number of them, and says that it is not whole', async () => {
  const { db, network, org, usdc } = stage
  const master = await stage.master()
  const rows = {
    organisation_id: `'${org.id}'`,
    wallet_id: `'${master.id}'`,
    network: `'${network.name}'`,
    token: `'${usdc}'`,
  }
  const deposit = { id: `'wtx_' || n`, direction: `'in'`, status: `'confirmed'`, chain: `'base'`, raw_amount: '1' }
  const amount = { decimals: '6', token_symbol: `'USDC'`, block_number: 'n', tx_hash: `'0x' || n` }
  await fillTable(db, 'wallet_transactions', { ...rows, ...deposit, ...amount }, { last: 12_000 })
  const { isWhole, amounts } = await summary()
  expect(isWhole).toBe(false)
  expect(amounts).toContainEqual(expect.objectContaining({ walletId: master.id }))
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const bounds = { rowsMax: 1_000, assetsMax: 100 }
  for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
    const { scanned } = await readBy(db, (one) => listHolds(one, tenant, bounds), mode)
    expect(scanned, mode).toBeLessThan(1_200n)
  }
})

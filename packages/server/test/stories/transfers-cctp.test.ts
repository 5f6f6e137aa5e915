import { cctpFeeRecipient, fundNative, fundToken, sendFromDevAccount } from '@purser/devnet'
import { type Address, formatAmount } from '@purser/protocol'
import { encodeFunctionData, parseAbi } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aCctpStage, type CctpStage, usualFee } from '../cctp-stage.ts'
import type { Burnt } from '../iris.ts'
import type { PartnerResponse } from '../partner-double.ts'
import { bridgeOf } from '../partner-stage.ts'
import { createFakeScreening } from '../screening-double.ts'
import { driving, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, codeOf } from '../world.ts'

let stage: CctpStage

beforeAll(async () => {
  stage = await aCctpStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())
afterEach(() => Promise.all([stage.onBase, stage.onEthereum].map((node) => node.setAutomine(true))))

test('USDC is burned here, attested, and minted there by our own claim; its end is published once', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  const reported: ((burnt: Burnt) => PartnerResponse)[] = [
    () => ({ status: 404, json: { code: 404, error: 'Message not found' } }),
    (burnt) => burnt.pending(),
    (burnt) => burnt.pending('insufficient_fee'),
  ]
  stage.iris.says = (burnt) => reported.shift()?.(burnt) ?? burnt.complete(usualFee)
  const collected = await stage.usdcOn(stage.ethereum, cctpFeeRecipient)
  const sent = await stage.send(body)
  expect(sent.body).toMatchObject({ status: 'pending', route: 'partner-bridge', toAmount: '49.995' })
  expect(sent.body.routeReason).toMatch(/Circle burns USDC.*Circle keeps 0\.005 USDC/)
  expect(await stage.usdcOn(stage.base, master.address), 'burnt').toBe(50_000_000n)
  const ended = await stage.ended(sent)
  expect(ended).toMatchObject({ status: 'confirmed', toAmount: '49.995', receivedToken: null })
  expect(reported, 'each was waited for').toEqual([])
  expect(await stage.usdcOn(stage.ethereum, body.toAddress)).toBe(49_995_000n)
  expect((await stage.usdcOn(stage.ethereum, cctpFeeRecipient)) - collected).toBe(5_000n)
  expect(await stage.claimsOf(master)).toBe(1)
  await stage.mine(5)
  expect((await stage.eventsOf(sent)).map(({ type, payload }) => [type, payload.toAmount])).toEqual([
    ['transfer.completed', '49.995'],
  ])
})

test('where Circle has no fast transfer fee the burn is the standard one, and the whole amount arrives', async () => {
  stage.iris.fees = stage.iris.fees.slice(1)
  const thresholds: string[] = []
  stage.iris.says = (burnt) => {
    thresholds.push(burnt.sent.slice(2 + 140 * 2, 2 + 144 * 2))
    return burnt.complete()
  }
  const body = bridgeOf(await stage.aTraveller())
  const sent = await stage.send(body)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '50' })
  expect(await stage.usdcOn(stage.ethereum, body.toAddress)).toBe(50_000_000n)
  expect(thresholds[0]).toBe('000007d0')
})

test('a recipient that the USDC of the other chain refuses is refused before anything is burnt', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  await list('blacklist', body.toAddress)
  const refusal = { reason: 'Blacklistable: account is blacklisted' }
  for (const path of ['/wallet-infra/transfer/quote', '/wallet-infra/transfer']) {
    const answered = await stage.world.call(stage.org.liveKey, 'POST', path, body)
    expect([answered.status, codeOf(answered), answered.body], path).toMatchObject([422, 'transfer-reverted', refusal])
  }
  expect(await stage.usdcOn(stage.base, master.address)).toBe(100_000_000n)
  await list('unBlacklist', body.toAddress)
  expect(await stage.ended(await stage.send(body))).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
})

test('without gas on the other chain the claim waits, and is sent once there is some', async () => {
  const master = await stage.aTraveller(0n)
  const body = bridgeOf(master)
  const sent = await stage.send(body)
  await stage.untilPartnerStatus(sent, 'complete: no gas to claim')
  expect([(await stage.get(sent)).status, await stage.claimsOf(master)]).toEqual(['pending', 0])
  await fundNative(stage.ethereum, master.address, 10n ** 18n)
  await untilBooked(stage.world, stage.ethereum)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
})

test('a delivery by somebody else is complete without a claim of ours, once it is final', async () => {
  const master = await stage.aTraveller(0n)
  const body = bridgeOf(master)
  let burnt: Burnt | undefined
  stage.iris.says = (one) => {
    burnt = one
    return one.complete(usualFee)
  }
  const sent = await stage.send(body)
  await stage.untilPartnerStatus(sent, 'complete: no gas to claim')
  if (burnt === undefined) throw new Error('no request came')
  const before = await stage.onEthereum.snapshot()
  await stage.claimAsStranger(burnt)
  const requested = stage.iris.requested.length
  await expect.poll(() => stage.iris.requested.length).toBeGreaterThan(requested + 1)
  expect((await stage.get(sent)).status, 'its block may still be undone').toBe('pending')
  await stage.onEthereum.revert({ id: before })
  expect(await stage.usdcOn(stage.ethereum, body.toAddress)).toBe(0n)
  await stage.untilPartnerStatus(sent, 'complete: no gas to claim')
  await stage.claimAsStranger(burnt)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 0])
  expect((await stage.eventsOf(sent)).map(({ type }) => type)).toEqual(['transfer.completed'])
})

test('nothing is burned for a chain on which the service could not claim', async () => {
  const blind = await aWorld({
    chains: [stage.base],
    config: { partners: { cctp: { baseUrl: stage.iris.url } } },
    boot: { screening: createFakeScreening(() => new Date()) },
  })
  try {
    const org = await blind.organisation()
    const path = '/wallet-infra/master-wallets'
    const { body } = await blind.call(org.liveKey, 'POST', path, { chain: 'base', supportedTokens: ['USDC'] })
    const master = { id: String(body.id), address: body.address as Address }
    await fundNative(stage.base, master.address, 10n ** 18n)
    await fundToken(stage.base, 'USDC', master.address, 100_000_000n)
    await untilBooked(blind, stage.base)
    const refused = await blind.call(org.liveKey, 'POST', '/wallet-infra/transfer', bridgeOf(master))
    expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-not-configured'])
    expect(await stage.usdcOn(stage.base, master.address)).toBe(100_000_000n)
  } finally {
    await blind.stop()
  }
})

test('a burn that a reorganization undoes is sent again as the same bytes, and Circle is queried only for final burns', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  const before = await stage.onBase.snapshot()
  const sent = await stage.send(body)
  expect(sent.body.status).toBe('pending')
  await stage.onBase.setAutomine(false)
  await stage.onBase.revert({ id: before })
  await expect.poll(async () => leftAtOf(sent)).toBeNull()
  expect(await stage.usdcOn(stage.base, master.address)).toBe(100_000_000n)
  expect(stage.iris.requested.filter(({ query }) => query.transactionHash === sent.body.txHash)).toEqual([])
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', txHash: sent.body.txHash })
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
  expect(await stage.countOf(master.address, 'base'), 'approval and burn').toBe(2)
  expect((await stage.eventsOf(sent)).map(({ type }) => type)).toEqual(['transfer.completed'])
})

test('an approval that a reorganization undoes after its call was sent is sent again first, and the money moves once', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  const before = await stage.onBase.snapshot()
  await stage.onBase.setAutomine(false)
  const response = stage.send(body)
  await stage.untilBroadcast(master.address, 1)
  await stage.onBase.mine({ blocks: 1 })
  await stage.untilBroadcast(master.address, 2)
  await stage.onBase.revert({ id: before })
  const mined = setInterval(() => void stage.mine(), 300)
  const sent = await response.finally(() => clearInterval(mined))
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(await stage.usdcOn(stage.base, master.address)).toBe(50_000_000n)
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
  expect(await stage.countOf(master.address, 'base')).toBe(2)
})

function leftAtOf({ body }: Answer): Promise<Date | null> {
  const row = z.object({ leftAt: z.date().nullable() })
  const statement = sql`select left_at from transfers where id = ${String(body.id)}`
  return stage.world.database.db.one(row, statement).then(({ leftAt }) => leftAt)
}

test('the gas of a claim counts towards the cap of its coin from the request on, so that a second bridge above the cap is refused', async () => {
  const master = await stage.aTraveller()
  stage.iris.says = (burnt) => burnt.pending()
  const first = await stage.send(bridgeOf(master))
  const own = await gasCounted(`${first.body.id} gas`)
  // The cap suffices for the gas of two bridges on Base, and not for that of their claims.
  const operations = { transfer: { recipients: 'any' } }
  const tokens = { USDC: { perDay: '1000' }, ETH: { perDay: formatAmount((own * 21n) / 10n, 18) } }
  const path = `/wallet-infra/master-wallets/${master.id}/policy`
  expect((await stage.world.call(stage.org.liveKey, 'PUT', path, { operations, tokens })).status).toBe(200)
  const second = await stage.send(bridgeOf(master))
  expect([second.status, codeOf(second), second.body.rule, second.body.token]).toEqual([
    403,
    'policy-denied',
    'perDay',
    'ETH',
  ])
  expect(await gasCounted(`${first.body.id} claim gas`)).toBeGreaterThan(0n)
  stage.iris.says = (burnt) => burnt.complete(usualFee)
  await stage.onEthereum.setAutomine(false)
  await expect
    .poll(() => stage.onBase.mine({ blocks: 1 }).then(() => stage.claimsOf(master)), { ...driving, timeout: 90_000 })
    .toBe(1)
  expect(await gasCounted(`${first.body.id} claim gas`), 'the claim under way counts by itself').toBe(0n)
  await stage.onEthereum.setAutomine(true)
  expect(await stage.ended(first)).toMatchObject({ status: 'confirmed' })
  expect(await gasCounted(`${first.body.id} claim gas`)).toBe(0n)
})

test('the gas of the claim of a bridge that waited for another counts at the price when it begins', async () => {
  const master = await stage.aTraveller()
  stage.iris.says = (burnt) => burnt.pending()
  await stage.onBase.setAutomine(false)
  const first = stage.send(bridgeOf(master))
  await stage.untilBroadcast(master.address, 1)
  const second = stage.send(bridgeOf(master))
  const claim = z.object({ id: z.string(), isPlanned: z.boolean() })
  const newest = () =>
    stage.world.database.db.maybeOne(
      claim,
      sql`
      select t.id, exists (select from transfer_steps s where s.transfer_id = t.id and s.transaction_id is not null) as is_planned
      from transfers t where t.wallet_id = ${master.id} order by t.id desc limit 1`,
    )
  await expect.poll(newest, { timeout: 90_000 }).toMatchObject({ isPlanned: false })
  const { id = '' } = (await newest()) ?? {}
  const before = await gasCounted(`${id} claim gas`)
  await stage.onEthereum.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 11n })
  await stage.onEthereum.mine({ blocks: 1 })
  await expect
    .poll(() => stage.onBase.mine({ blocks: 1 }).then(newest), { ...driving, timeout: 90_000 })
    .toMatchObject({ id, isPlanned: true })
  expect(before).toBeGreaterThan(0n)
  expect(await gasCounted(`${id} claim gas`)).toBeGreaterThan(before * 10n)
  await stage.onBase.setAutomine(true)
  await Promise.all([first, second])
})

/** Lists or unlists an account at the USDC of Ethereum. */
async function list(functionName: 'blacklist' | 'unBlacklist', account: Address): Promise<void> {
  const abi = parseAbi(['function blacklist(address)', 'function unBlacklist(address)'])
  const data = encodeFunctionData({ abi, functionName, args: [account] })
  await sendFromDevAccount(stage.ethereum, stage.ethereum.tokens.USDC ?? '0x', data)
}

async function gasCounted(subjectId: string): Promise<bigint> {
  const { gas } = await stage.world.database.db.one(
    z.object({ gas: z.string() }),
    sql`select coalesce(sum(atto_amount), 0)::numeric(78)::text as gas from policy_reservations where subject_id = ${subjectId}`,
  )
  return BigInt(gas)
}

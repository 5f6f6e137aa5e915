import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { expireQuotes } from '../../src/features/transfers/quotes.ts'
import type { RouteQuote } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import {
  aPartnerStage,
  bridgeOf,
  type Managed,
  masters,
  type PartnerStage,
  stranger,
  swapOf,
} from '../partner-stage.ts'
import { type Answer, codeOf } from '../world.ts'

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

const word = (value: bigint) => value.toString(16).padStart(64, '0')

/** Changes the amount of a quote's calls: the last word of the deposit is the minimum received. */
const offering =
  (rawOut: bigint, rawOutMin = rawOut) =>
  (quote: RouteQuote) => {
    const calls = quote.calls.map((call, at) =>
      at === 1 ? { ...call, data: `${call.data.slice(0, -64)}${word(rawOutMin)}` as `0x${string}` } : call,
    )
    return { ok: true, quote: { ...quote, rawOut, rawOutMin, calls } } as const
  }

const quoteOf = (body: Record<string, unknown>, key = stage.org.testKey) =>
  stage.world.call(key, 'POST', '/wallet-infra/transfer/quote', body)

/** The minimums in the wallet's signed deposits, in order. */
async function signedMinimums({ address }: Managed): Promise<bigint[]> {
  const rows = await stage.world.database.db.many(
    z.object({ least: z.string() }),
    sql`select encode(substring(data from length(data) - 31), 'hex') as least from transfer_steps where kind = 'partner' and sender = ${address}
      and transaction_id is not null`,
  )
  return rows.map(({ least }) => BigInt(`0x${least}`))
}

const refusal = (response: Answer) => [response.status, codeOf(response), response.body.offered, response.body.minimum]

test.each<[string, bigint, string]>([
  ['a millionth of a dollar for 50', 1n, '0.000001'],
  ['a half', 25_000_000n, '25'],
  ['a unit less than 98 %', 48_999_999n, '48.999999'],
])('a partner that offers %s gets nothing signed: 422 price-too-low', async (_, rawOut, offered) => {
  const master = await stage.aMaster()
  stage.conduct = { quote: offering(rawOut) }
  expect(refusal(await stage.send(bridgeOf(master)))).toEqual([422, 'price-too-low', offered, '49'])
  expect(refusal(await quoteOf(bridgeOf(master)))).toEqual([422, 'price-too-low', offered, '49'])
  expect(await stage.countOf(master)).toBe(0)
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(100_000_000n)
})

test('a price below par is accepted with an explicit minimum', async () => {
  const master = await stage.aMaster()
  stage.conduct = { quote: offering(30_000_000n, 29_900_000n) }
  const sent = await stage.send(bridgeOf(master, { minToAmount: '29.9' }))
  expect([sent.status, sent.body.minToAmount]).toEqual([201, '29.9'])
})

test('the caller’s minimum is the signed call’s minimum: the partner is queried again with less slippage', async () => {
  const master = await stage.aMaster()
  const usual = await stage.send(bridgeOf(master, { amount: '10' }))
  expect([usual.status, usual.body.toAmount, usual.body.minToAmount]).toEqual([201, '9.99', '9.94005'])
  const tight = await stage.send(bridgeOf(master, { amount: '10', minToAmount: '9.985' }))
  expect([tight.status, tight.body.minToAmount]).toEqual([201, '9.985005'])
  expect((await signedMinimums(master)).toSorted()).toEqual([9_940_050n, 9_985_005n])
  expect(refusal(await stage.send(bridgeOf(master, { amount: '10', minToAmount: '9.990001' })))).toEqual([
    422,
    'price-too-low',
    '9.99',
    '9.990001',
  ])
})

test('a partner whose call guarantees less than the minimum is refused, whatever its estimate', async () => {
  const master = await stage.aMaster()
  stage.conduct = { quote: offering(49_100_000n, 48_900_000n) }
  const response = await stage.send(bridgeOf(master))
  expect([response.status, codeOf(response)]).toEqual([503, 'partner-unavailable'])
  expect(await stage.countOf(master)).toBe(0)
})

test.each([['0'], ['-1'], ['1.1234567'], ['many']])('a minimum of %s is a validation error', async (minToAmount) => {
  const response = await stage.send(bridgeOf(await stage.aMaster(), { minToAmount }))
  expect([response.status, codeOf(response), JSON.stringify(response.body.errors)]).toEqual([
    422,
    'validation-error',
    expect.stringContaining('/minToAmount'),
  ])
})

test('without a swap exactly the amount arrives, so a higher minimum is refused', async () => {
  const master = await stage.aMaster()
  const direct = bridgeOf(master, { toChain: 'base', amount: '5' })
  expect(refusal(await stage.send({ ...direct, minToAmount: '5.000001' }))).toEqual([
    422,
    'price-too-low',
    '5',
    '5.000001',
  ])
  const sent = await stage.send({ ...direct, quoteId: (await quoteOf(direct)).body.quoteId })
  expect([sent.status, sent.body.status, sent.body.minToAmount]).toEqual([201, 'confirmed', '5'])
})

test('a coin and a token have no par: a swap needs a minimum or a quote', async () => {
  const master = await stage.aMaster()
  const { minToAmount: _, ...swap } = swapOf(master)
  const refused = await stage.send(swap)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'minimum-needed'])
  const quote = await quoteOf(swap)
  const sent = await stage.send({ ...swap, quoteId: quote.body.quoteId })
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(Number(sent.body.toAmount)).toBeGreaterThanOrEqual(Number(quote.body.minToAmount))
})

test('a quote has a minimum received and an expiry, and a transfer uses it once', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master, { amount: '10' })
  const { body: quote } = await quoteOf(body)
  expect(quote).toMatchObject({ toAmount: '9.99', minToAmount: '9.94005', quoteId: expect.stringMatching(/^qte_/) })
  const leftMs = Date.parse(String(quote.expiresAt)) - stage.clock.now().getTime()
  expect(leftMs > 0 && leftMs <= 60_000).toBe(true)
  const sent = await stage.send({ ...body, quoteId: quote.quoteId })
  expect([sent.status, sent.body.minToAmount]).toEqual([201, '9.94005'])
  const again = await stage.send({ ...body, quoteId: quote.quoteId })
  expect([again.status, codeOf(again)]).toEqual([422, 'quote-not-found'])
})

test('of five concurrent transfers with one quote, one is made', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master, { amount: '10' })
  const { quoteId } = (await quoteOf(body)).body
  const answers = await Promise.all(Array.from({ length: 5 }, () => stage.send({ ...body, quoteId })))
  const codes = answers.map((response) => (response.status === 201 ? 'made' : codeOf(response)))
  expect(codes.toSorted()).toEqual(['made', ...Array.from({ length: 4 }, () => 'quote-not-found')])
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(90_000_000n)
})

test('a price that fell below the quote is refused and leaves the quote unused', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master)
  const { quoteId } = (await quoteOf(body)).body
  // Within the 2 % of par, but under the quoted minimum.
  stage.conduct = { quote: offering(49_700_000n, 49_500_000n) }
  expect(refusal(await stage.send({ ...body, quoteId }))).toEqual([422, 'price-too-low', '49.7', '49.70025'])
  expect(await stage.countOf(master)).toBe(0)
  stage.renew()
  expect((await stage.send({ ...body, quoteId })).status).toBe(201)
})

test('a quote binds wallet, tokens, chains, recipient and amount', async () => {
  const [master, other] = [await stage.aMaster(), await stage.aMaster()]
  const body = bridgeOf(master)
  const { quoteId } = (await quoteOf(body)).body
  for (const [field, value] of [
    ['fromWalletId', other.id],
    ['toAddress', stranger()],
    ['amount', '50.000001'],
    ['toChain', 'base'],
    ['toToken', 'ETH'],
  ] as const) {
    const response = await stage.send({ ...body, quoteId, minToAmount: '0.000001', [field]: value })
    expect([field, response.status, codeOf(response)]).toEqual([field, 422, 'quote-mismatch'])
    expect(JSON.stringify(response.body.errors)).toContain(`/${field}`)
  }
  expect((await stage.send({ ...body, quoteId })).status, 'none of them used it up').toBe(201)
})

test('a quote of another organisation is like one that never existed', async () => {
  const master = await stage.aMaster()
  const { quoteId } = (await quoteOf(bridgeOf(master))).body
  const { testKey } = await stage.world.organisation()
  const theirs = await stage.aMaster(100_000_000n, { at: stage.world, key: testKey })
  const stolen = await stage.world.call(testKey, 'POST', '/wallet-infra/transfer', {
    ...bridgeOf(theirs),
    quoteId,
  })
  expect([stolen.status, codeOf(stolen)]).toEqual([422, 'quote-not-found'])
  expect((await stage.world.call(testKey, 'GET', `${masters}/${master.id}`)).status).toBe(404)
})

test('a quote is valid for 60 seconds, and deleted an hour after its expiry', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master)
  const { quoteId } = (await quoteOf(body)).body
  stage.clock.forward(60_001)
  const late = await stage.send({ ...body, quoteId })
  expect([late.status, codeOf(late)]).toEqual([422, 'quote-expired'])
  expect(await stage.countOf(master)).toBe(0)
  stage.clock.forward(3_600_000)
  const fresh = (await quoteOf(body)).body.quoteId
  await expireQuotes.run({ ...stage.world.server.deps } as never)
  const left = await stage.world.database.db.many(z.object({ id: z.string() }), sql`select id from transfer_quotes`)
  expect(left).toEqual([{ id: fresh }])
})

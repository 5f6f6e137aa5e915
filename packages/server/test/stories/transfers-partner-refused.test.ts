import { sandboxBridgeAddress, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { RouteQuote } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { nodeOf } from '../live-stage.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, stranger } from '../partner-stage.ts'
import { codeOf } from '../world.ts'

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

const usdc = () => stage.base.tokens.USDC

/** The contracts that the wallet's transactions call, in order. */
async function calledBy({ address }: Managed): Promise<string[]> {
  const rows = await stage.world.database.db.many(
    z.object({ to: z.string() }),
    sql`select to_address as to from chain_transactions where sender = ${address} order by nonce`,
  )
  return rows.map(({ to }) => to)
}

const word = (value: bigint) => value.toString(16).padStart(64, '0')

test.each<[string, (quote: RouteQuote) => RouteQuote]>([
  [
    'a larger approval',
    (quote) => ({
      ...quote,
      calls: quote.calls.map((call, at) =>
        at === 0 ? { ...call, data: `${call.data.slice(0, 74)}${word(2n ** 200n)}` as `0x${string}` } : call,
      ),
    }),
  ],
  [
    'a call to another contract than the approved one',
    (quote) => ({ ...quote, calls: quote.calls.map((call, at) => (at === 1 ? { ...call, to: stranger() } : call)) }),
  ],
  ['an extra call', (quote) => ({ ...quote, calls: [...quote.calls, ...quote.calls] })],
  ['a call to the token itself', (quote) => ({ ...quote, calls: quote.calls.slice(0, 1) })],
  ['more than the slippage', (quote) => ({ ...quote, rawOutMin: quote.rawOut / 2n })],
  ['an expired quote', (quote) => ({ ...quote, expiresAt: new Date(0) })],
])('a partner that requests %s is refused before anything is signed', async (_, change) => {
  const master = await stage.aMaster()
  stage.conduct = { quote: (quote) => ({ ok: true, quote: change(quote) }) }
  const refused = await stage.send(bridgeOf(master))
  expect([refused.status, codeOf(refused)]).toEqual([503, 'partner-unavailable'])
  expect(await stage.countOf(master)).toBe(0)
})

test('a route without a partner, and one that the guard refused, are different errors', async () => {
  const master = await stage.aMaster()
  const across = await stage.send(bridgeOf(master, { toToken: 'ETH', minToAmount: '0.001' }))
  expect([across.status, codeOf(across), across.body.reason]).toEqual([422, 'no-route', 'no-route'])
  stage.conduct = { quote: () => ({ ok: false, reason: 'unsafe', words: 'target-not-listed' }) }
  expect(codeOf(await stage.send(bridgeOf(master)))).toBe('partner-unavailable')
  expect(await stage.countOf(master)).toBe(0)
})

test('a quote that expired while its approval was mined is not signed: the transfer fails and the money stays', async () => {
  const master = await stage.aMaster()
  const node = nodeOf(stage.base)
  await node.setAutomine(false)
  const sending = stage.send(bridgeOf(master))
  try {
    await expect.poll(() => stage.countOf(master)).toBe(1)
    await stage.world.database.db.run(
      sql`update transfers set quote_expires_at = created_at where wallet_id = ${master.id}`,
    )
  } finally {
    await node.setAutomine(true)
    await node.mine({ blocks: 1 })
  }
  const refused = await sending
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'quote-expired'])
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(100_000_000n)
  await expect.poll(() => stage.countOf(master), { timeout: 60_000 }).toBe(2)
  expect(await calledBy(master), 'the approval and its revocation').toEqual([usdc(), usdc()])
})

test('a call that does not match the request is not signed, and neither is its approval', async () => {
  const master = await stage.aMaster()
  stage.conduct = {
    quote: (quote) => ({
      ok: true,
      quote: {
        ...quote,
        calls: quote.calls.map((call, at) =>
          at === 1 ? { ...call, data: `0xdeadbeef${call.data.slice(10)}` as `0x${string}` } : call,
        ),
      },
    }),
  }
  const refused = await stage.send(bridgeOf(master))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([503, 'partner-unavailable', 'unsafe-call'])
  expect(await stage.countOf(master)).toBe(0)
})

test('a contract that no longer takes the money when its approval is mined is not called', async () => {
  const master = await stage.aMaster()
  const node = nodeOf(stage.base)
  const code = await node.getCode({ address: sandboxBridgeAddress })
  if (code === undefined) throw new Error('no bridge')
  await node.setAutomine(false)
  const sending = stage.send(bridgeOf(master))
  try {
    await expect.poll(() => stage.countOf(master)).toBe(1)
    // STOP: it accepts any call, and takes no money.
    await node.setCode({ address: sandboxBridgeAddress, bytecode: '0x00' })
  } finally {
    await node.setAutomine(true)
    await node.mine({ blocks: 1 })
  }
  const refused = await sending
  await node.setCode({ address: sandboxBridgeAddress, bytecode: code })
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'call-refused'])
  await expect.poll(() => stage.countOf(master), { timeout: 60_000 }).toBe(2)
  expect(await calledBy(master), 'the approval and its revocation').toEqual([usdc(), usdc()])
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(100_000_000n)
})

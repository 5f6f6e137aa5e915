import { devAccount, fundNative } from '@purser/devnet'
import type { Hex } from '@purser/protocol'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { aCctpStage, type CctpStage, usualFee } from '../cctp-stage.ts'
import type { Attested } from '../iris.ts'
import type { PartnerResponse } from '../partner-double.ts'
import { bridgeOf } from '../partner-stage.ts'
import { driving, untilBooked } from '../transfer-stage.ts'

const zeroNonce = `0x${'00'.repeat(32)}` as const
let stage: CctpStage

beforeAll(async () => {
  stage = await aCctpStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

test('an expired attestation is requested again, and the new one is claimed', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  const reattested = stage.iris.reattested
  // It expires at the current block, so no later block accepts it.
  stage.iris.says = async (burnt) => {
    const next = (await stage.onEthereum.getBlockNumber()) + 1n
    return burnt.complete({ ...usualFee, expirationBlock: stage.iris.reattested > reattested ? next + 1_000n : next })
  }
  const sent = await stage.send(body)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(stage.iris.reattested - reattested).toBe(1)
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
})

const lies: readonly [string, Attested][] = [
  ['of another amount', { rawAmount: 49_000_000n }],
  ['for another recipient', { recipient: devAccount.address }],
  ['of somebody else’s tokens', { ...usualFee, depositor: devAccount.address }],
  ['of a fee above what was allowed', { rawFee: 5_000_000n }],
  [
    'without a nonce, which Circle’s contracts treat as delivered from their first day',
    { nonce: zeroNonce, ...usualFee },
  ],
  ['signed by another key', { ...usualFee, isForged: true }],
]

test('a message that differs from the burned one is not claimed and ends nothing; the true one then is', async () => {
  const reported = new Map<string, number>()
  const lieOf = new Map<string, Attested>()
  stage.iris.says = ({ txHash, complete }) => {
    const count = (reported.get(txHash) ?? 0) + 1
    reported.set(txHash, count)
    return complete(count < 3 ? lieOf.get(txHash) : usualFee)
  }
  const burns = []
  for (const [which, lie] of lies) {
    const master = await stage.aTraveller()
    const body = bridgeOf(master)
    const sent = await stage.send(body)
    const txHash = String(sent.body.txHash)
    lieOf.set(txHash, lie)
    burns.push({ which, txHash, master, to: body.toAddress, sent })
  }
  for (const { which, txHash, master, to, sent } of burns) {
    expect(await stage.ended(sent), which).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
    expect(reported.get(txHash), which).toBeGreaterThanOrEqual(3)
    expect([await stage.usdcOn(stage.ethereum, to), await stage.claimsOf(master)], which).toEqual([49_995_000n, 1])
  }
})

test('a message with the nonce of somebody else’s delivery, which Circle never attested, ends nothing; the true one then is claimed', async () => {
  const used = keccak256('0xfe')
  const other = await stage.aTraveller()
  // Nobody attests one message twice, so that this stands for a burn that this service has not made.
  stage.iris.says = async (burnt) => {
    await stage.deliver(await burnt.complete({ ...usualFee, nonce: used }))
    stage.iris.says = (one) => one.complete(usualFee)
    return burnt.pending()
  }
  await stage.ended(await stage.send(bridgeOf(other)))
  let lies = 0
  stage.iris.says = (burnt) => burnt.complete({ ...usualFee, ...(lies++ < 3 && { nonce: used, isForged: true }) })
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  expect(await stage.ended(await stage.send(body))).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
  expect(lies).toBeGreaterThan(3)
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
})

test('a service of Circle’s that is silent, broken or down for long ends nothing, and the transfer continues when it is back', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  const faults: PartnerResponse[] = [
    { status: 503, json: { error: 'down' } },
    { status: 429, json: { error: 'slow down' } },
    { status: 500, text: '<html>' },
    { text: 'no json' },
    { json: { messages: 'none' } },
    { json: { messages: [] } },
    'cut',
  ]
  stage.iris.says = (burnt) => faults.shift() ?? burnt.complete(usualFee)
  const sent = await stage.send(body)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(faults).toEqual([])
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
})

test('of two equal burns each is delivered by its own message, whatever Circle answers for the other', async () => {
  const master = await stage.aTraveller(0n)
  const body = bridgeOf(master)
  const first = await stage.send(body)
  await stage.untilPartnerStatus(first, 'complete: no gas to claim')
  // Circle's service confuses the second burn with the first.
  const mistaken = { nonce: keccak256(String(first.body.txHash) as Hex), ...usualFee }
  stage.iris.says = ({ txHash, complete }) => complete(txHash === first.body.txHash ? usualFee : mistaken)
  const second = await stage.send(body)
  expect(second.body.txHash).not.toBe(first.body.txHash)
  await stage.untilPartnerStatus(second, 'complete: of another transfer')
  expect(await stage.claimsOf(master)).toBe(0)
  await fundNative(stage.ethereum, master.address, 10n ** 18n)
  await untilBooked(stage.world, stage.ethereum)
  expect(await stage.ended(first)).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
  const requested = stage.iris.requested.length
  await expect.poll(() => stage.mine().then(() => stage.iris.requested.length), driving).toBeGreaterThan(requested + 1)
  expect((await stage.get(second)).status, 'the first one’s message was delivered').toBe('pending')
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([49_995_000n, 1])
  expect(stage.lines.join('')).toContain('a partner returned the state of another transfer')
  stage.iris.says = (burnt) => burnt.complete(usualFee)
  expect(await stage.ended(second)).toMatchObject({ status: 'confirmed', toAmount: '49.995' })
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([99_990_000n, 2])
  for (const one of [first, second])
    expect((await stage.eventsOf(one)).map(({ type }) => type)).toEqual(['transfer.completed'])
})

test('a message that was first answered for the wrong one of two burns is free again once that one gets its own', async () => {
  const master = await stage.aTraveller(0n)
  const body = bridgeOf(master)
  const nonces = new Map<string, Hex>()
  stage.iris.says = ({ txHash, complete }) => complete({ nonce: nonces.get(txHash) ?? keccak256('0x00'), ...usualFee })
  const first = await stage.send(body)
  await stage.untilPartnerStatus(first, 'complete: no gas to claim')
  nonces.set(String(first.body.txHash), keccak256('0x01'))
  const second = await stage.send(body)
  nonces.set(String(second.body.txHash), keccak256('0x00'))
  await stage.untilPartnerStatus(second, 'complete: no gas to claim')
  await fundNative(stage.ethereum, master.address, 10n ** 18n)
  await untilBooked(stage.world, stage.ethereum)
  for (const one of [first, second]) expect(await stage.ended(one)).toMatchObject({ status: 'confirmed' })
  expect([await stage.usdcOn(stage.ethereum, body.toAddress), await stage.claimsOf(master)]).toEqual([99_990_000n, 2])
})

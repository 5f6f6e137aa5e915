import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bundledList } from '../../src/partners/screening/bundled-list.ts'
import { sandboxFlaggedAddress, sandboxPendingAddress } from '../../src/partners/screening/index.ts'
import type { Screened } from '../../src/partners/screening/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, asV1, type Facilitator, facilitatorOf, withRequirements } from '../facilitated.ts'
import { offersOf, payByEvmCharge, payByProof } from '../mpp-agent.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { aTempoPayer, aTempoWallet, push, offerOf as tempoOfferOf } from '../tempo-payer.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, unreachableMain, type World } from '../world.ts'

const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
const cleared: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
const nobodyKnows: Screened = { result: 'pending', reason: 'list-stale', oracle: 'failed' }
const resource = 'https://api.example.com/weather'

let base: DevChain
let tempo: DevChain
let world: World
let org: Org
let screening: FakeScreening
let facilitator: Facilitator
let wallet: { id: string; address: `0x${string}` }
let tempoWallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  ;[base, tempo] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [base, tempo], boot: { screening } })
  org = await world.organisation()
  ;[wallet, tempoWallet] = [await world.wallet(org), await aTempoWallet(world, org)]
  facilitator = facilitatorOf(world.base, org.testKey)
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([base?.stop(), tempo?.stop()])
})

async function aSanctionedPayer(): Promise<Payer> {
  const payer = await aPayer(base)
  screening.setResult(payer.account.address, listed)
  return payer
}

function challenge(price = '0.01', walletId = wallet.id): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId, resource, price })
}

function verify(protocol: 'x402' | 'mpp', credential: string, price = '0.01', walletId = wallet.id): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol, credential, price, walletId, resource })
}

async function paymentsBy(payer: string): Promise<bigint> {
  const Row = z.object({ count: z.bigint() })
  return (await world.database.db.one(Row, sql`select count(*) as count from payments where payer = ${payer}`)).count
}

const outcomeOf = ({ status, body }: Answer): string => `${status} ${String(body.reason)} ${String(body.message)}`

test('an x402 payment of a sanctioned payer is refused and not recorded', async () => {
  const payer = await aSanctionedPayer()
  const refused = await verify('x402', await payer.credential(await challenge()))
  expect([outcomeOf(refused), codeOf(refused)]).toEqual([
    '402 payer_sanctioned the payer is sanctioned',
    'payment-verification-failed',
  ])
  expect(await paymentsBy(payer.account.address)).toBe(0n)
})

test('the facilitator refuses a sanctioned payer at verify and at settle, and no money moves', async () => {
  const payer = await aSanctionedPayer()
  const body = await aPaymentBody(world, org, { payer, wallet })
  const { address } = payer.account
  expect((await facilitator.verify(body)).body).toEqual({
    isValid: false,
    invalidReason: 'payer_sanctioned',
    invalidMessage: 'the payer is sanctioned',
    payer: address,
  })
  expect((await facilitator.settle(body)).body).toMatchObject({
    success: false,
    errorReason: 'payer_sanctioned',
    transaction: '',
    payer: address,
  })
  expect([await paymentsBy(address), await tokenBalance(base, 'USDC', wallet.address)]).toEqual([0n, 0n])
})

test('the facilitator does not settle for a payer who was sanctioned after verify', async () => {
  const payer = await aPayer(base)
  const body = await aPaymentBody(world, org, { payer, wallet })
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
  screening.setResult(payer.account.address, listed)
  expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: 'payer_sanctioned' })
  expect(await tokenBalance(base, 'USDC', wallet.address)).toBe(0n)
})

test.each(['payer', 'receiver'] as const)(
  'a payment whose %s is sanctioned after verify is not settled: it fails, moves no money and is not counted',
  async (party) => {
    const [payer, receiver] = [await aPayer(base), await world.wallet(org)]
    const credential = await payer.credential(await challenge('0.01', receiver.id))
    const { body } = await verify('x402', credential, '0.01', receiver.id)
    const used = async () => Object((await world.call(org.testKey, 'GET', '/billing/usage')).body.payments).used
    const before = await used()
    screening.setResult(party === 'payer' ? payer.account.address : receiver.address, listed)
    const settle = () =>
      world.call(org.testKey, 'POST', '/payments/settle', {
        paymentId: body.paymentId,
        settlementToken: body.settlementToken,
      })
    for (const refused of [await settle(), await settle()]) {
      expect([refused.status, codeOf(refused)]).toEqual([409, 'settlement-failed'])
      expect(refused.body.reason).toBe(party === 'payer' ? 'payer_sanctioned' : 'invalid_payment_requirements')
    }
    expect(await tokenBalance(base, 'USDC', receiver.address)).toBe(0n)
    expect(await used()).toBe(before - 1)
  },
)

test('the facilitator refuses a sanctioned payTo, also if it is no wallet of the service', async () => {
  const payer = await aPayer(base)
  const own = await aPaymentBody(world, org, { payer, wallet: await world.wallet(org) })
  screening.setResult(String(own.paymentRequirements.payTo), listed)
  const strange = privateKeyToAddress(generatePrivateKey())
  screening.setResult(strange, listed)
  const foreign = await aPaymentBody(world, org, { payer, wallet, changes: { sign: { to: strange } } })
  const accepted = { ...Object(foreign.paymentPayload.accepted), payTo: strange }
  const bodies = [
    own,
    { ...withRequirements(foreign, { payTo: strange }), paymentPayload: { ...foreign.paymentPayload, accepted } },
  ]
  for (const body of bodies) {
    expect((await facilitator.verify(body)).body).toMatchObject({
      isValid: false,
      invalidReason: 'invalid_payment_requirements',
      invalidMessage: 'payTo is sanctioned',
    })
  }
  expect(await paymentsBy(payer.account.address)).toBe(0n)
})

test('MPP payments of a sanctioned payer are refused: evm charge and proof', async () => {
  const { account } = await aSanctionedPayer()
  const [offer] = offersOf(await challenge())
  const free = tempoOfferOf(await challenge('0', tempoWallet.id))
  if (offer === undefined) throw new Error('no offer')
  const answers = [
    await verify('mpp', await payByEvmCharge(account, offer)),
    await verify('mpp', await payByProof(account, free), '0', tempoWallet.id),
  ]
  const sentence = '402 verification-failed The payment was refused: the payer is sanctioned.'
  expect(answers.map(outcomeOf)).toEqual([sentence, sentence])
  expect(await paymentsBy(account.address)).toBe(0n)
})

test('Tempo payments of a sanctioned payer are refused: a signed transaction is not broadcast, a hash buys nothing', async () => {
  const payer = await aTempoPayer(tempo)
  screening.setResult(payer.account.address, listed)
  const offer = async () => tempoOfferOf(await challenge('0.01', tempoWallet.id))
  const sentence = '402 verification-failed The payment was refused: the payer is sanctioned.'
  expect(outcomeOf(await verify('mpp', await payer.pull(await offer()), '0.01', tempoWallet.id))).toBe(sentence)
  expect(await tokenBalance(tempo, 'pathUSD', tempoWallet.address)).toBe(0n)
  const pushed = await offer()
  const credential = push(pushed, await payer.broadcast(pushed), payer)
  expect(outcomeOf(await verify('mpp', credential, '0.01', tempoWallet.id))).toBe(sentence)
  expect(await paymentsBy(payer.account.address)).toBe(0n)
})

test('version 1 of x402 is refused too: a sanctioned payer at verify and at the facilitator, and a sanctioned payTo', async () => {
  const [payer, receiver] = [await aPayer(base), await world.wallet(org)]
  const body = asV1(await aPaymentBody(world, org, { payer, wallet: receiver }))
  const credential = Buffer.from(JSON.stringify(body.paymentPayload)).toString('base64')
  screening.setResult(payer.account.address, listed)
  expect(outcomeOf(await verify('x402', credential, '0.01', receiver.id))).toBe(
    '402 payer_sanctioned the payer is sanctioned',
  )
  expect((await facilitator.verify(body)).body).toMatchObject({ isValid: false, invalidReason: 'payer_sanctioned' })
  expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: 'payer_sanctioned' })
  screening.setResult(payer.account.address, cleared)
  screening.setResult(receiver.address, listed)
  const refusal = 'invalid_payment_requirements'
  expect((await facilitator.verify(body)).body).toMatchObject({ isValid: false, invalidReason: refusal })
  expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: refusal })
  expect(outcomeOf(await verify('x402', credential, '0.01', receiver.id))).toBe(`402 ${refusal} payTo is sanctioned`)
  expect([await paymentsBy(payer.account.address), await tokenBalance(base, 'USDC', receiver.address)]).toEqual([
    0n,
    0n,
  ])
})

test('MPP payments to a sanctioned receiver are refused: evm charge, proof, and on Tempo a transaction and a hash', async () => {
  const [payer, onBase] = [await aTempoPayer(tempo), await world.wallet(org)]
  const [onTempo, pushedTo] = [await aTempoWallet(world, org), await aTempoWallet(world, org)]
  const { account } = await aPayer(base)
  const [offer] = offersOf(await challenge('0.01', onBase.id))
  if (offer === undefined) throw new Error('no offer')
  const free = tempoOfferOf(await challenge('0', onTempo.id))
  const [pulled, pushed] = [
    tempoOfferOf(await challenge('0.01', onTempo.id)),
    tempoOfferOf(await challenge('0.01', pushedTo.id)),
  ]
  // Before the receiver is listed: its own screening would flag the wallet meanwhile, and the refusal would be another.
  const hash = push(pushed, await payer.broadcast(pushed), payer)
  for (const { address } of [onBase, onTempo]) screening.setResult(address, listed)
  const byTempo = (credential: string, price = '0.01') => verify('mpp', credential, price, onTempo.id)
  const before = await tokenBalance(tempo, 'pathUSD', onTempo.address)
  const answers = [
    await verify('mpp', await payByEvmCharge(account, offer), '0.01', onBase.id),
    await byTempo(await payByProof(account, free), '0'),
    await byTempo(await payer.pull(pulled)),
  ]
  expect(await tokenBalance(tempo, 'pathUSD', onTempo.address)).toBe(before)
  screening.setResult(pushedTo.address, listed)
  answers.push(await verify('mpp', hash, '0.01', pushedTo.id))
  const sentence = '402 verification-failed The payment was refused: payTo is sanctioned.'
  expect(answers.map(outcomeOf)).toEqual([sentence, sentence, sentence, sentence])
  expect([await paymentsBy(account.address), await paymentsBy(payer.account.address)]).toEqual([0n, 0n])
})

test('no challenge names a sanctioned receiver, since its payer may send the money at once', async () => {
  const receivers = [await world.wallet(org), await aTempoWallet(world, org)]
  for (const { id, address } of receivers) {
    expect((await challenge('0.01', id)).status).toBe(200)
    screening.setResult(address, listed)
    const refused = await challenge('0.01', id)
    expect([refused.status, codeOf(refused)]).toEqual([422, 'wallet-flagged'])
  }
})

test('a session ends when its payment fails because its payer was sanctioned', async () => {
  const payer = await aPayer(base)
  const { paymentId, settlementToken } = (await verify('x402', await payer.credential(await challenge()))).body
  const { sessionToken } = (await world.call(org.testKey, 'POST', '/sessions', { paymentId })).body
  const shown = { sessionToken, host: 'api.example.com', walletId: wallet.id }
  const isOpen = async () => (await world.call(org.testKey, 'POST', '/sessions/verify', shown)).status
  expect(await isOpen()).toBe(200)
  screening.setResult(payer.account.address, listed)
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect([settled.status, settled.body.reason, await isOpen()]).toEqual([409, 'payer_sanctioned', 402])
  expect((await world.call(org.testKey, 'POST', '/sessions', { paymentId })).status).not.toBe(201)
})

test('a payment is not refunded to a payer who was sanctioned since', async () => {
  const made = { chain: 'base', supportedTokens: ['USDC'] }
  const master = (await world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', made)).body
  const address = z.templateLiteral(['0x', z.string()]).parse(master.address)
  await Promise.all([fundNative(base, address, 10n ** 18n), fundToken(base, 'USDC', address, 1_000_000n)])
  const payer = await aPayer(base)
  const credential = await payer.credential(await challenge('0.01', String(master.id)))
  const { paymentId, settlementToken } = (await verify('x402', credential, '0.01', String(master.id))).body
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect(settled.status).toBe(200)
  const before = await tokenBalance(base, 'USDC', payer.account.address)
  screening.setResult(payer.account.address, listed)
  const refused = await world.call(org.testKey, 'POST', `/payments/${String(paymentId)}/refund`, {})
  expect([refused.status, codeOf(refused)]).toEqual([422, 'recipient-flagged'])
  expect(await tokenBalance(base, 'USDC', payer.account.address)).toBe(before)
})

test('a payment whose payer cannot be screened is accepted', async () => {
  const payer = await aPayer(base)
  screening.setResult(payer.account.address, nobodyKnows)
  expect((await verify('x402', await payer.credential(await challenge()))).status).toBe(200)
})

test('a sandbox refuses its flagged address and accepts its pending one, from the start', async () => {
  const sandbox = await aWorld({ chains: [base] })
  try {
    const { screening: own } = sandbox.server.deps
    const results = [sandboxFlaggedAddress, sandboxPendingAddress, privateKeyToAddress(generatePrivateKey())].map(
      (address) => `${own.screenNow(address, 'test').result} ${own.screenNow(address, 'live').result}`,
    )
    expect(results).toEqual(['flagged pending', 'pending pending', 'clear pending'])
  } finally {
    await sandbox.stop()
  }
})

test('a transfer with live keys is 503 while the list is stale and the oracle fails, and a listed recipient is always refused', async () => {
  const live = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' } })
  try {
    const { liveKey } = await live.organisation()
    const master = await live.call(liveKey, 'POST', '/wallet-infra/master-wallets', {
      chain: 'base',
      supportedTokens: ['USDC'],
    })
    const transfer = (toAddress: string) =>
      live.call(liveKey, 'POST', '/wallet-infra/transfer', {
        fromWalletId: master.body.id,
        toAddress,
        amount: '1',
        fromToken: 'USDC',
        toToken: 'USDC',
        toChain: 'base',
      })
    const answers = [
      await transfer(privateKeyToAddress(generatePrivateKey())),
      await transfer(bundledList.addresses[0]),
    ].map((response) => `${response.status} ${codeOf(response)}`)
    expect(answers).toEqual(['503 screening-unavailable', '422 recipient-flagged'])
  } finally {
    await live.stop()
  }
})

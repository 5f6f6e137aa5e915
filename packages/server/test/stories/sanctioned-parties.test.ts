import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bundledList } from '../../src/partners/screening/bundled-list.ts'
import {
  createFakeScreening,
  type FakeScreening,
  sandboxFlaggedAddress,
  sandboxPendingAddress,
} from '../../src/partners/screening/index.ts'
import type { Screened } from '../../src/partners/screening/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, type Facilitator, facilitatorOf, withRequirements } from '../facilitated.ts'
import { offersOf, payByEvmCharge, payByProof } from '../mpp-agent.ts'
import { aTempoPayer, aTempoWallet, push, offerOf as tempoOfferOf } from '../tempo-payer.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, unreachableMain, type World } from '../world.ts'

const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
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
  screening.say(payer.account.address, listed)
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

const said = ({ status, body }: Answer): string => `${status} ${String(body.reason)} ${String(body.message)}`

test('an x402 payment of a sanctioned payer is refused and not recorded', async () => {
  const payer = await aSanctionedPayer()
  const refused = await verify('x402', await payer.credential(await challenge()))
  expect([said(refused), codeOf(refused)]).toEqual([
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
  screening.say(payer.account.address, listed)
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
    screening.say(party === 'payer' ? payer.account.address : receiver.address, listed)
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
  screening.say(String(own.paymentRequirements.payTo), listed)
  const strange = privateKeyToAddress(generatePrivateKey())
  screening.say(strange, listed)
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
  expect(answers.map(said)).toEqual([sentence, sentence])
  expect(await paymentsBy(account.address)).toBe(0n)
})

test('Tempo payments of a sanctioned payer are refused: a signed transaction is not broadcast, a hash buys nothing', async () => {
  const payer = await aTempoPayer(tempo)
  screening.say(payer.account.address, listed)
  const offer = async () => tempoOfferOf(await challenge('0.01', tempoWallet.id))
  const sentence = '402 verification-failed The payment was refused: the payer is sanctioned.'
  expect(said(await verify('mpp', await payer.pull(await offer()), '0.01', tempoWallet.id))).toBe(sentence)
  expect(await tokenBalance(tempo, 'pathUSD', tempoWallet.address)).toBe(0n)
  const pushed = await offer()
  const credential = push(pushed, await payer.broadcast(pushed), payer)
  expect(said(await verify('mpp', credential, '0.01', tempoWallet.id))).toBe(sentence)
  expect(await paymentsBy(payer.account.address)).toBe(0n)
})

test('a payment whose payer cannot be screened is accepted', async () => {
  const payer = await aPayer(base)
  screening.say(payer.account.address, nobodyKnows)
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
    ].map((answer) => `${answer.status} ${codeOf(answer)}`)
    expect(answers).toEqual(['503 screening-unavailable', '422 recipient-flagged'])
  } finally {
    await live.stop()
  }
})

import { type DevChain, startChain } from '@purser/devnet'
import { type Network, networkByName } from '@purser/protocol'
import { createTestClient, type Hex, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Chain } from '../../src/chain/port.ts'
import { createGasPrices, type GasPrices, shippedCoinPrices } from '../../src/features/plans/gas-prices.ts'
import { createLog } from '../../src/platform/log.ts'
import { aPaymentBody, facilitatorOf } from '../facilitated.ts'
import { offerOf, offersOf, payByEvmCharge, requestOf } from '../mpp-agent.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, type World } from '../world.ts'

/** Gas for the cheapest payment costs 0.00007 and 0.07 US dollars at these prices: a test coin counts as a dollar. */
const cheap = 1_000_000_000n
const costly = 1_000_000_000_000n

const ethereum = served('eth-sepolia')
const base = served('base-sepolia')
const weiPerGas = new Map([ethereum, base].map(({ name }) => [name, cheap]))
/** Nodes that do not answer. */
const down = new Set<string>()
let aheadMs = 0
const clock = { now: () => new Date(Date.now() + aheadMs) }
/** Nodes that report the price that the test sets. */
const chains = {
  configured: [ethereum, base],
  on: ({ name }: Network) => ({ offeredFees: () => priceAt(name) }) as unknown as Chain,
}
const newGasPrices = () => createGasPrices({ chains, clock, log: createLog({ level: 'silent' }) }, shippedCoinPrices)
/** Those of a process, which a restart replaces. */
let gasPrices = newGasPrices()
const ofProcess: GasPrices = {
  costOf: (network, gas) => gasPrices.costOf(network, gas),
  knownCostOf: (network, gas) => gasPrices.knownCostOf(network, gas),
  recentReads: (networks) => gasPrices.recentReads(networks),
  worthOf: (network, wei) => gasPrices.worthOf(network, wei),
  leastCostOf: (network, gas) => gasPrices.leastCostOf(network, gas),
  lowestKnownCostOf: (network, gas) => gasPrices.lowestKnownCostOf(network, gas),
}

async function priceAt(name: Network['name']) {
  await new Promise(setImmediate)
  if (down.has(name)) throw new Error('the node is down')
  return { baseFee: weiPerGas.get(name), priorityFee: 0n, l1Fee: 0n, dataGas: 0n }
}

let nodes: DevChain[]
let world: World
let org: Org
let payer: Payer
let onEthereum: { id: string }
let onBase: { id: string }

beforeAll(async () => {
  nodes = await Promise.all([startChain({ network: 'eth-sepolia' }), startChain({ network: 'base-sepolia' })])
  world = await aWorld({ chains: nodes, boot: { clock, gasPrices: ofProcess } })
  org = await world.organisation()
  onEthereum = await world.wallet(org, { chain: 'eth-sepolia' })
  onBase = await world.wallet(org)
  payer = await aPayer(nodes[0])
})
afterAll(async () => {
  await world?.stop()
  for (const node of nodes ?? []) await node.stop()
})

function served(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`${name} is no network`)
  return network
}

/** Lets time pass while each network's price is read twice a minute, as under load. */
async function pass(seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 30) {
    aheadMs += 30_000
    for (const network of chains.configured) gasPrices.costOf(network, 1n)
    await new Promise(setImmediate)
  }
}

const resource = 'https://api.example.com/weather'

function challenge(body: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  const requested = { walletId: onEthereum.id, resource, price: '0.01', ...body }
  return world.call(org.testKey, 'POST', '/payments/challenge', requested)
}

function verify(protocol: 'x402' | 'mpp', credential: string): Promise<Answer> {
  const body = { protocol, credential, price: '0.01', walletId: onEthereum.id, resource }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

const Offers = z.object({ accepts: z.array(z.looseObject({ network: z.string() })) })

/** The networks that each protocol of a challenge offers. */
function networksOf(response: Answer): { x402: string[]; mpp: string[] } {
  const required: unknown = JSON.parse(Buffer.from(String(response.body.x402), 'base64').toString('utf8'))
  return {
    x402: Offers.parse(required).accepts.map(({ network }) => network),
    mpp: offersOf(response).map((offer) => `eip155:${Reflect.get(Object(requestOf(offer).methodDetails), 'chainId')}`),
  }
}

const below = '422 amount-below-minimum'
const outcomeOf = async (requested: Promise<Answer>) => {
  const response = await requested
  return `${response.status} ${codeOf(response)}`.trim()
}

test('a network whose gas costs more than the price is not offered, in either protocol, and the others are', async () => {
  const wallets = { otherWalletIds: [onBase.id] }
  await pass(30)
  const both = [ethereum.caip2, base.caip2]
  expect(networksOf(await challenge(wallets))).toEqual({ x402: both, mpp: both })

  weiPerGas.set(ethereum.name, costly)
  await pass(30)
  expect(networksOf(await challenge(wallets))).toEqual({ x402: [base.caip2], mpp: [base.caip2] })
  expect(await outcomeOf(challenge())).toBe(below)
  expect(await outcomeOf(challenge({ price: '0.069999' }))).toBe(below)
  expect((await challenge()).body.detail).toMatch(/^The price is below 0\.07 USD, /)
  expect(await outcomeOf(challenge({ price: '0.07' }))).toBe('200')

  weiPerGas.set(ethereum.name, cheap)
  await pass(30)
  expect(networksOf(await challenge(wallets))).toEqual({ x402: both, mpp: both })
})

test('the first challenges of a process know the minimum, and one whose nodes are down still makes challenges', async () => {
  const wallets = { otherWalletIds: [onBase.id] }
  weiPerGas.set(ethereum.name, costly)
  gasPrices = newGasPrices()
  const first = await Promise.all([challenge(wallets), challenge(wallets)])
  expect(first.map(networksOf)).toEqual(Array(2).fill({ x402: [base.caip2], mpp: [base.caip2] }))
  expect(await outcomeOf(challenge())).toBe(below)

  weiPerGas.set(ethereum.name, cheap)
  down.add(ethereum.name)
  gasPrices = newGasPrices()
  expect(await outcomeOf(challenge())).toBe('200')
  down.clear()
  await pass(30)
})

test('a challenge that was issued before gas became costly is honored until it expires, at every entry point, and then it is not', async () => {
  weiPerGas.set(ethereum.name, cheap)
  await pass(400)
  const facilitator = facilitatorOf(world.base, org.testKey)
  const credentials = () =>
    Promise.all(
      [0, 1].map(async () => ({
        x402: await payer.credential(await challenge(), { sign: { validBefore: validUntil(900) } }),
        mpp: await payByEvmCharge(payer.account, offerOf(await challenge())),
        body: await aPaymentBody(world, org, {
          payer,
          wallet: onEthereum,
          changes: { sign: { validBefore: validUntil(900) } },
        }),
      })),
    )
  const [honored, late] = await credentials()
  if (honored === undefined || late === undefined) throw new Error('two of each')
  weiPerGas.set(ethereum.name, costly)
  await pass(270)

  expect(await outcomeOf(challenge())).toBe(below)
  expect(await outcomeOf(verify('mpp', honored.mpp))).toBe('200')
  expect(await outcomeOf(verify('x402', honored.x402))).toBe('200')
  expect((await facilitator.verify(honored.body)).body).toMatchObject({ isValid: true })

  await pass(150)
  expect(await outcomeOf(verify('mpp', late.mpp))).toBe(below)
  expect(await outcomeOf(verify('x402', late.x402))).toBe(below)
  expect((await facilitator.verify(late.body)).body).toMatchObject({
    isValid: false,
    invalidReason: 'invalid_payment_requirements',
  })
})

function validUntil(seconds: number): string {
  return String(Math.floor(clock.now().getTime() / 1_000) + seconds)
}

/** Code of an account that accepts every signature (EIP-1271) after it has used more than 300,000 gas. */
const dear = '0x612ee05b6001900380600357631626ba7e60e01b60005260206000f3'

/** Code of an account that accepts no signature. */
const refusing = '0x60206000f3'

/** A payer whose account has this code. */
async function aContract(bytecode: Hex) {
  const [node] = nodes
  if (node === undefined) throw new Error('there is no node')
  const contract = await aPayer(node)
  const anvil = createTestClient({ mode: 'anvil', transport: http(node.rpcUrl) })
  const setCode = (code: Hex) => anvil.setCode({ address: contract.account.address, bytecode: code })
  await setCode(bytecode)
  return { contract, setCode }
}

test('a contract account gets the gas that its payment pays for, and one that needs more is refused', async () => {
  const { contract, setCode } = await aContract(dear)
  weiPerGas.set(ethereum.name, costly)
  await pass(450)
  const outcomeAt = async (price: string) => {
    const credential = withLongSignature(
      await contract.credential(await challenge({ price }), { sign: { validBefore: validUntil(900) } }),
    )
    const body = { protocol: 'x402', credential, price, walletId: onEthereum.id, resource }
    const response = await world.call(org.testKey, 'POST', '/payments/verify', body)
    return [response.status, response.body.message]
  }
  expect(await outcomeAt('0.2')).toEqual([402, 'The chain refuses the payment with the gas that its amount pays for.'])
  expect(await outcomeAt('0.45')).toEqual([200, undefined])
  await setCode(refusing)
  expect(await outcomeAt('0.2'), 'more gas would not help').toEqual([402, undefined])
  weiPerGas.set(ethereum.name, cheap)
  await pass(30)
})

test('gas is limited by the price also where nothing was paid for ten minutes, and in a process that has just started', async () => {
  const { contract } = await aContract(dear)
  const facilitator = facilitatorOf(world.base, org.testKey)
  const bodyAt = async (price: string) => {
    const changes = { sign: { validBefore: validUntil(3_000) } }
    const body = await aPaymentBody(world, org, { payer: contract, wallet: onEthereum, price, changes })
    const payload = { ...Object(body.paymentPayload.payload), signature: `0x${'ab'.repeat(70)}` }
    return { ...body, paymentPayload: { ...body.paymentPayload, payload } }
  }
  const moments: Record<string, () => void> = {
    'ten minutes without a payment': () => {
      aheadMs += 600_000
    },
    'a process that has just started': () => {
      gasPrices = newGasPrices()
    },
  }
  for (const [moment, begin] of Object.entries(moments)) {
    weiPerGas.set(ethereum.name, cheap)
    await pass(30)
    const bodies = await Promise.all(['0.001', '0.2', '0.45'].map(bodyAt))
    weiPerGas.set(ethereum.name, costly)
    await pass(450)
    begin()
    const answers = []
    for (const body of bodies) answers.push((await facilitator.verify(body)).body.isValid)
    expect([moment, answers]).toEqual([moment, [false, false, true]])
  }
  weiPerGas.set(ethereum.name, cheap)
  await pass(30)
})

/** A credential with a signature that only a contract can check. */
function withLongSignature(credential: string): string {
  const payment = JSON.parse(Buffer.from(credential, 'base64').toString('utf8'))
  payment.payload.signature = `0x${'ab'.repeat(70)}`
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}

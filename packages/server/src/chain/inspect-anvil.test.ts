import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { type Address, type Hex, hexToBytes, type Network, networkByName, parseEcdsa, type TransferAuthorization } from '@purser/protocol'
import { toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../platform/clock.ts'
import { isProblem } from '../platform/errors.ts'
import { createOutbound, type Outbound } from '../platform/outbound.ts'
import { createChains } from './chain.ts'
import type { AuthorizationProbe, Chain } from './port.ts'

const payTo: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
let dev: DevChain
let network: Network
let chain: Chain
let outbound: Outbound
let token: Address

beforeAll(async () => {
  const found = networkByName('base-sepolia')
  if (found === undefined) throw new Error('no such network')
  network = found
  dev = await startChain({ network: 'base-sepolia' })
  token = dev.tokens.USDC ?? '0x'
  outbound = createOutbound()
  const rpcUrls = { 'base-sepolia': [dev.rpcUrl] }
  chain = createChains({ outbound, clock: systemClock, networks: [network], rpcUrls, rpcTimeoutMs: 4_000 }).on(network)
})
afterAll(async () => {
  await outbound?.close()
  await dev?.stop()
})

test('a funded payer whose signature is good would be taken, and nothing is moved by asking', async () => {
  const payer = await aPayer(1_000n)
  const facts = await chain.inspectAuthorization(await probe(payer, 1_000n))
  expect(facts).toMatchObject({ balance: 1_000n, nonceUsed: false, simulation: { ok: true } })
  expect(await chain.balances([{ token, account: payer.address }])).toEqual([1_000n])
})

test('several authorizations of one payer, asked at once, are each judged as if they were alone', async () => {
  const payer = await aPayer(10n)
  const probes = await Promise.all(Array.from({ length: 6 }, () => probe(payer, 10n)))
  const facts = await Promise.all(probes.map((one) => chain.inspectAuthorization(one)))
  expect(facts.map(({ simulation }) => simulation.ok)).toEqual(probes.map(() => true))
})

test('a payer without the money gets the token\'s own reason, and its neighbours do not notice', async () => {
  const [rich, poor] = [await aPayer(5n), await aPayer(1n)]
  const [good, bad] = await Promise.all([chain.inspectAuthorization(await probe(rich, 5n)), chain.inspectAuthorization(await probe(poor, 5n))])
  expect(good?.simulation).toEqual({ ok: true })
  expect(bad?.simulation).toEqual({ ok: false, reason: 'ERC20: transfer amount exceeds balance' })
})

test('an account whose code burns all gas does not make the payments beside it fail', async () => {
  const honest = await Promise.all(Array.from({ length: 8 }, () => aPayer(3n)))
  const hostile = await aPayer(3n)
  await setCode(hostile.address, '0xfe')
  const probes = await Promise.all([hostile, ...honest].map((payer) => probe(payer, 3n)))
  const facts = await Promise.all(probes.map((one) => chain.inspectAuthorization(one)))
  expect(facts.slice(1).map(({ simulation }) => simulation)).toEqual(honest.map(() => ({ ok: true })))
  expect(facts[0]?.simulation.ok).toBe(false)
})

test('a node that is gone is chain-unavailable, and no address of a node is in what the caller sees', async () => {
  const rpcUrls = { 'base-sepolia': ['http://127.0.0.1:9/secret-key-of-the-node'] }
  const gone = createChains({ outbound, clock: systemClock, networks: [network], rpcUrls, rpcTimeoutMs: 500 }).on(network)
  const payer = privateKeyToAccount(generatePrivateKey())
  const error: unknown = await gone.inspectAuthorization(await probe(payer, 1n)).catch((thrown: unknown) => thrown)
  expect(isProblem(error, 'chain-unavailable')).toBe(true)
  if (!(error instanceof Error)) throw new Error('not an error')
  expect(`${error.message}${JSON.stringify(error)}`).not.toContain('secret-key')
})

async function aPayer(rawAmount: bigint): Promise<PrivateKeyAccount> {
  const payer = privateKeyToAccount(generatePrivateKey())
  await fundToken(dev, 'USDC', payer.address, rawAmount)
  return payer
}

async function probe(payer: PrivateKeyAccount, value: bigint): Promise<AuthorizationProbe> {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const authorization: TransferAuthorization = { from: payer.address, to: payTo, value, validAfter: 0n, validBefore: 2n ** 48n, nonce }
  const typedData = {
    domain: { name: 'USDC', version: '2', chainId: dev.chainId, verifyingContract: token },
    primaryType: 'TransferWithAuthorization',
    types: { TransferWithAuthorization: fields },
    message: authorization,
  } as const
  const signature = parseEcdsa(hexToBytes(await payer.signTypedData(typedData)))
  if (typeof signature === 'string') throw new Error(signature)
  return { token, authorization, signature, untrusted: false }
}

const fields = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const

async function setCode(address: Address, code: Hex): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_setCode', params: [address, code] })
  await outbound.postJson(dev.rpcUrl, body, { timeoutMs: 4_000, bytesMax: 10_000 })
}

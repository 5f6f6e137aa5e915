import {
  type DevChain,
  deploySmartWallet,
  fundToken,
  multicall3Address,
  sendFromDevAccount,
  smartWalletAddress,
  smartWalletDeployment,
  startChain,
  startFaultProxy,
} from '@purser/devnet'
import {
  type Address,
  encodeTransferWithAuthorization,
  type Hex,
  hexToBytes,
  type Network,
  networkByName,
  parseEcdsa,
  type TransferAuthorization,
} from '@purser/protocol'

import { encodeFunctionData, parseAbi, toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { createChains } from '../chains.ts'
import type { AuthorizationProbe, Chain } from '../port.ts'

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

test('a valid signature of a funded payer passes simulation, and the check moves no money', async () => {
  const payer = await aPayer(1_000n)
  const facts = await chain.inspectAuthorization(await probe(payer, 1_000n))
  expect(facts).toMatchObject({ balance: 1_000n, nonceUsed: false, simulation: { ok: true } })
  expect(await chain.balances([{ token, account: payer.address }])).toEqual([1_000n])
})

test('concurrent checks of one payer’s authorizations do not affect each other', async () => {
  const payer = await aPayer(10n)
  const probes = await Promise.all(Array.from({ length: 6 }, () => probe(payer, 10n)))
  const facts = await Promise.all(probes.map((one) => chain.inspectAuthorization(one)))
  expect(facts.map(({ simulation }) => simulation.ok)).toEqual(probes.map(() => true))
})

test("a payer without funds gets the token's own reason, and other checks in the batch are not affected", async () => {
  const [rich, poor] = [await aPayer(5n), await aPayer(1n)]
  const [good, bad] = await Promise.all([
    chain.inspectAuthorization(await probe(rich, 5n)),
    chain.inspectAuthorization(await probe(poor, 5n)),
  ])
  expect(good?.simulation).toEqual({ ok: true })
  expect(bad?.simulation).toEqual({ ok: false, reason: 'ERC20: transfer amount exceeds balance' })
})

test('an account whose code burns all gas does not fail the other payments of its batch', async () => {
  const honest = await Promise.all(Array.from({ length: 8 }, () => aPayer(3n)))
  const hostile = await aPayer(3n)
  await setCode(hostile.address, '0xfe')
  const probes = await Promise.all([hostile, ...honest].map((payer) => probe(payer, 3n)))
  const facts = await Promise.all(probes.map((one) => chain.inspectAuthorization(one)))
  expect(facts.slice(1).map(({ simulation }) => simulation)).toEqual(honest.map(() => ({ ok: true })))
  expect(facts[0]?.simulation.ok).toBe(false)
})

test('a deployed contract account is checked by its own contract', async () => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const wallet = await deploySmartWallet(dev, owner.address, 1n)
  await fundToken(dev, 'USDC', wallet, 7n)
  const good = await contractProbe(owner, wallet, 7n)
  expect(await chain.inspectAuthorization(good)).toEqual({ balance: 7n, nonceUsed: false, simulation: { ok: true } })
  const stranger = await contractProbe(privateKeyToAccount(generatePrivateKey()), wallet, 7n)
  expect((await chain.inspectAuthorization(stranger)).simulation).toEqual({
    ok: false,
    reason: 'FiatTokenV2: invalid signature',
  })
})

test('a contract account that is not deployed yet is checked as if its factory had run, and the check does not deploy it', async () => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const wallet = await smartWalletAddress(dev, owner.address, 2n)
  await fundToken(dev, 'USDC', wallet, 7n)
  const { factory, data } = smartWalletDeployment(owner.address, 2n)
  const probe = { ...(await contractProbe(owner, wallet, 7n)), deployment: { factory, factoryCalldata: data } }
  expect(await chain.inspectAuthorization(probe)).toEqual({ balance: 7n, nonceUsed: false, simulation: { ok: true } })
  expect((await chain.inspectAuthorization({ ...probe, deployment: undefined })).simulation.ok).toBe(false)
  expect(await chain.code(wallet)).toBe('0x')
})

test('a contract account that burns all gas or returns a megabyte is refused, and concurrent checks are not affected', async () => {
  const honest = await aPayer(3n)
  const owner = privateKeyToAccount(generatePrivateKey())
  const burner = await aPayer(3n)
  await setCode(burner.address, '0xfe')
  const shouter = await aPayer(3n)
  await setCode(shouter.address, '0x620fffff5ff3')
  const probes = [
    await contractProbe(owner, burner.address, 3n),
    await probe(honest, 3n),
    await contractProbe(owner, shouter.address, 3n),
  ]
  const facts = await Promise.all(probes.map((one) => chain.inspectAuthorization(one)))
  expect(facts.map(({ simulation }) => simulation.ok)).toEqual([false, true, false])
})

/** Code that counts down and then accepts a signature (EIP-1271): 26 gas per iteration, so 900,000 gas for 35,000 and 6,000 for 256. */
function acceptAfter(iterations: number): Hex {
  return `0x61${iterations.toString(16).padStart(4, '0')}5b600190038060035750631626ba7e60e01b5f5260205ff3`
}

test('the check of an account with code that signs like an ordinary one accepts nothing that needs more gas than settlement gives', async () => {
  const payer = await aPayer(3n)
  const own = { ...(await probe(payer, 3n)), untrusted: true }
  const data = encodeTransferWithAuthorization(own.authorization, own.signature)
  const outcomes: string[] = []
  for (let iterations = 2_000; iterations <= 6_000; iterations += 200) {
    await setCode(payer.address, acceptAfter(iterations))
    const { simulation } = await chain.inspectAuthorization(own)
    const call = { method: 'eth_call', params: [{ to: token, data, gas: '0x27100' }, 'latest'] }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...call })
    const sent = await (
      await fetch(dev.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    ).text()
    outcomes.push(`${simulation.ok} ${!sent.includes('"error"')}`)
  }
  expect(new Set(outcomes)).toEqual(new Set(['true true', 'false false']))
})

test('a wallet that needs more gas to validate than settlement allows is refused before the resource is served', async () => {
  const payer = await aPayer(3n)
  const isTaken = async () =>
    (await chain.inspectAuthorization(await contractProbe(payer, payer.address, 3n))).simulation.ok
  await setCode(payer.address, acceptAfter(256))
  expect(await isTaken()).toBe(true)
  await setCode(payer.address, acceptAfter(35_000))
  expect(await isTaken()).toBe(false)
})

test('on a chain whose latest block is old, a payment that became valid a moment ago is accepted', async () => {
  const payer = await aPayer(3n)
  const { timestampSeconds } = await chain.head()
  await expect.poll(async () => BigInt(Math.floor(Date.now() / 1_000)) > timestampSeconds + 1n).toBe(true)
  const facts = await chain.inspectAuthorization(await probe(payer, 3n, timestampSeconds))
  expect(facts.simulation).toEqual({ ok: true })
})

test('without Multicall3 on the chain the answers are the same', async () => {
  const code = await chain.code(multicall3Address)
  await setCode(multicall3Address, '0x')
  try {
    const [rich, poor] = [await aPayer(5n), await aPayer(1n)]
    const [good, bad] = await Promise.all([probe(rich, 5n), probe(poor, 5n)])
    expect(await Promise.all([good, bad].map((one) => chain.inspectAuthorization(one)))).toEqual([
      { balance: 5n, nonceUsed: false, simulation: { ok: true } },
      { balance: 1n, nonceUsed: false, simulation: { ok: false, reason: 'ERC20: transfer amount exceeds balance' } },
    ])
  } finally {
    await setCode(multicall3Address, code)
  }
})

test('a token’s signing domain is read, and a contract that is not a token has none', async () => {
  expect(await chain.tokenDomain(token)).toMatchObject({ name: 'USDC', version: '2' })
  expect(await chain.tokenDomain(multicall3Address)).toBeUndefined()
})

test('an authorization that a third party submitted is found with its transaction once it is deep enough', async () => {
  const payer = await aPayer(9n)
  const used = await probe(payer, 9n)
  const since = new Date(Date.now() - 60_000)
  const ask = (on: Chain) =>
    on.findAuthorizationUse({ token, authorizer: payer.address, nonce: used.authorization.nonce }, { since })
  expect(await ask(chain)).toEqual({ outcome: 'open' })
  const transactionHash = await sendFromDevAccount(
    dev,
    token,
    encodeTransferWithAuthorization(used.authorization, used.signature),
  )
  const unused = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const question = { token, account: payer.address, nonces: [unused, used.authorization.nonce], permits: [7n] }
  const funds = { rawBalance: 0n, spentNonces: [used.authorization.nonce], spentPermits: [] }
  expect(await chain.payerFunds(question)).toEqual(funds)
  expect(await ask(chainAtDepth(5))).toEqual({ outcome: 'open' })
  const use = await ask(chain)
  expect(use).toMatchObject({ outcome: 'used', receipt: { transactionHash } })
  expect(use.outcome === 'used' ? use.receipt.logs : []).toHaveLength(2)
})

test('an authorization that its payer canceled is reported as canceled and not as paid', async () => {
  const payer = await aPayer(9n)
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const signature = await payer.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: dev.chainId, verifyingContract: token },
    primaryType: 'CancelAuthorization',
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    message: { authorizer: payer.address, nonce },
  })
  const abi = parseAbi(['function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)'])
  await sendFromDevAccount(dev, token, encodeFunctionData({ abi, args: [payer.address, nonce, signature] }))
  const question = { token, account: payer.address, nonces: [nonce], permits: [] }
  expect((await chain.payerFunds(question)).spentNonces).toEqual([nonce])
  const id = { token, authorizer: payer.address, nonce }
  expect(await chain.findAuthorizationUse(id, { since: new Date() })).toMatchObject({ outcome: 'canceled' })
})

test('concurrent probes share one request to the node', async () => {
  const proxy = await startFaultProxy(dev.rpcUrl)
  const through = chainAt([proxy.url])
  const payers = await Promise.all(Array.from({ length: 20 }, () => aPayer(1n)))
  const probes = await Promise.all(payers.map((payer) => probe(payer, 1n)))
  await through.head()
  const before = proxy.requests
  await Promise.all(probes.map((one) => through.inspectAuthorization(one)))
  expect(proxy.requests - before).toBe(1)
  const busy = await aPayer(1n)
  const ofOnePayer = await Promise.all(Array.from({ length: 6 }, () => probe(busy, 1n)))
  const then = proxy.requests
  await Promise.all(ofOnePayer.map((one) => through.inspectAuthorization(one)))
  expect(proxy.requests - then).toBe(1)
  await proxy.stop()
})

test('an unreachable node is chain-unavailable, and the error that the caller sees does not contain the node’s URL', async () => {
  const rpcUrls = { 'base-sepolia': ['http://127.0.0.1:9/secret-key-of-the-node'] }
  const gone = createChains({ outbound, clock: systemClock, networks: [network], rpcUrls, rpcTimeoutMs: 500 }).on(
    network,
  )
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

async function probe(payer: PrivateKeyAccount, value: bigint, validAfter = 0n): Promise<AuthorizationProbe> {
  const authorization = authorizationOf(payer.address, value, validAfter)
  const signature = parseEcdsa(hexToBytes(await sign(payer, authorization)))
  if (typeof signature === 'string') throw new Error(signature)
  return { token, authorization, signature, untrusted: false }
}

async function contractProbe(owner: PrivateKeyAccount, wallet: Address, value: bigint): Promise<AuthorizationProbe> {
  const authorization = authorizationOf(wallet, value, 0n)
  return {
    token,
    authorization,
    signature: { kind: 'bytes', signature: await sign(owner, authorization) },
    untrusted: true,
  }
}

function authorizationOf(from: Address, value: bigint, validAfter: bigint): TransferAuthorization {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  return { from, to: payTo, value, validAfter, validBefore: 2n ** 48n, nonce }
}

function sign(signer: PrivateKeyAccount, message: TransferAuthorization): Promise<Hex> {
  return signer.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: dev.chainId, verifyingContract: token },
    primaryType: 'TransferWithAuthorization',
    types: { TransferWithAuthorization: fields },
    message,
  })
}

function chainAtDepth(confirmationDepth: number): Chain {
  return chainAt([dev.rpcUrl], { ...network, confirmationDepth })
}

function chainAt(urls: readonly string[], on: Network = network): Chain {
  return createChains({
    outbound,
    clock: systemClock,
    networks: [on],
    rpcUrls: { [on.name]: urls },
    rpcTimeoutMs: 4_000,
  }).on(on)
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

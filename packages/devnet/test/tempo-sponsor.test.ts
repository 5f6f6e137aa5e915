import {
  type Address,
  createPublicClient,
  encodeFunctionData,
  erc20Abi,
  getAddress,
  type Hex,
  http,
  isAddressEqual,
  keccak256,
  numberToHex,
  parseAbi,
  parseEventLogs,
  recoverAddress,
} from 'viem'
import { generatePrivateKey, type LocalAccount, privateKeyToAccount, sign, toAccount } from 'viem/accounts'
import { Transaction } from 'viem/tempo'
import { tempoModerato } from 'viem/tempo/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DevChain, fundFees, fundToken, startChain, tokenBalance } from '../src/index.ts'
import { rpc } from '../src/rpc.ts'

const memoAbi = parseAbi(['function transferWithMemo(address to, uint256 amount, bytes32 memo)'])
const memo = keccak256('0x01')
const feeManager = '0xfeEC000000000000000000000000000000000000'
const pathUsd = '0x20C0000000000000000000000000000000000000'
const expiringNonce = 2n ** 256n - 1n
const attoPerUnit = 10n ** 12n

let chain: DevChain
const payer = privateKeyToAccount(generatePrivateKey())
const sponsorKey = generatePrivateKey()
const sponsor = digestSigner(sponsorKey)

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  await fundToken(chain, 'pathUSD', payer.address, 1_000_000n)
  await fundFees(chain, sponsor.address)
})
afterAll(() => chain.stop())

test('the payer of a sponsored transfer pays the price alone; a signer of digests, which never shows its key, pays the fee', async () => {
  const recipient = freshAddress()
  const handedIn = await signedByPayer({ recipient, amount: 1_000n })
  const raw = await sponsored(handedIn, sponsor)
  const before = await balances()
  const receipt = await broadcast(raw)

  const fee = feeOf(receipt)
  expect(receipt).toMatchObject({ status: 'success', transactionHash: keccak256(raw) })
  expect(feeTransfers(receipt)).toEqual([{ token: pathUsd, from: sponsor.address, amount: fee }])
  expect(await tokenBalance(chain, 'pathUSD', recipient)).toBe(1_000n)
  const after = await balances()
  expect({ payer: before.payer - after.payer, sponsor: before.sponsor - after.sponsor }).toEqual({
    payer: 1_000n,
    sponsor: fee,
  })
})

test('a transaction for a sponsor names its sender in plain text, and only its signature proves it', async () => {
  const handedIn = await signedByPayer({ recipient: freshAddress(), amount: 1_001n })
  expect(handedIn.slice(0, 4)).toBe('0x78')
  expect(await senderOf(handedIn)).toBe(payer.address)

  const stranger = freshAddress()
  const forged = tempoRaw(handedIn.replace(payer.address.slice(2).toLowerCase(), stranger.slice(2).toLowerCase()))
  expect(Transaction.deserialize(forged).from).toBe(stranger.toLowerCase())
  expect(await senderOf(forged)).toBe(payer.address)
})

test('what the payer signed buys once, whatever fee token it is sponsored with', async () => {
  const recipient = freshAddress()
  await fundToken(chain, 'AlphaUSD', sponsor.address, 1_000_000n)
  const handedIn = await signedByPayer({ recipient, amount: 1_002n })
  const first = await sponsored(handedIn, sponsor)
  const second = await sponsored(handedIn, sponsor, chain.tokens.AlphaUSD)
  expect(keccak256(second)).not.toBe(keccak256(first))

  expect(await broadcast(first)).toMatchObject({ status: 'success' })
  expect(await rpc(chain.rpcUrl, 'eth_sendRawTransaction', [second])).toBe(keccak256(second))
  await mineAnother()
  expect(await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [keccak256(second)])).toBeNull()
  expect(await tokenBalance(chain, 'pathUSD', recipient)).toBe(1_002n)
})

test('a sponsored transfer that reverts costs the sponsor its fee, and its receipt says so', async () => {
  const handedIn = await signedByPayer({ recipient: freshAddress(), amount: 10n ** 12n })
  const receipt = await broadcast(await sponsored(handedIn, sponsor))
  expect(receipt).toMatchObject({ status: 'reverted' })
  expect(feeTransfers(receipt)).toEqual([{ token: pathUsd, from: sponsor.address, amount: feeOf(receipt) }])
})

test('a transfer to an address that is new to the token uses more than four times the gas of one to an existing holder', async () => {
  const recipient = freshAddress()
  const toFresh = await broadcast(await sponsored(await signedByPayer({ recipient, amount: 1_003n }), sponsor))
  const toOld = await broadcast(await sponsored(await signedByPayer({ recipient, amount: 1_004n }), sponsor))
  // A zero byte in the call data costs 12 less, and a random address or signature has a few.
  expect(309_407n - toFresh.gasUsed).toBeLessThan(500n)
  expect(toFresh.gasUsed - 309_407n).toBeLessThan(500n)
  expect(toFresh.gasUsed / toOld.gasUsed).toBe(4n)
})

test('without a sponsor the payer pays the fee, by expiring nonce and by a plain EIP-1559 transaction', async () => {
  const recipient = freshAddress()
  const pulled = await broadcast(await signedByPayer({ recipient, amount: 1_005n, feeToken: pathUsd }))
  await fundFees(chain, payer.address)
  const pushed = await broadcast(
    await payer.signTransaction({ ...ordinaryFees, ...transferCall(recipient, 1_006n), chainId: 42_431, nonce: 0 }),
  )
  for (const receipt of [pulled, pushed])
    expect(feeTransfers(receipt)).toEqual([{ token: pathUsd, from: payer.address, amount: feeOf(receipt) }])
  expect(await tokenBalance(chain, 'pathUSD', recipient)).toBe(2_011n)
})

test('the node accepts a transaction that is valid for more than 30 seconds, and never mines it', async () => {
  const recipient = freshAddress()
  const far = await signedByPayer({ recipient, amount: 1_007n, feeToken: pathUsd, validSeconds: 300 })
  expect(await rpc(chain.rpcUrl, 'eth_sendRawTransaction', [far])).toBe(keccak256(far))
  await mineAnother()
  expect(await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [keccak256(far)])).toBeNull()
  expect(await tokenBalance(chain, 'pathUSD', recipient)).toBe(0n)
})

test('on the chain of tempo a payer with USDC.e alone pays, when a sponsor pays the fee in pathUSD', async () => {
  const tempo = await startChain({ network: 'tempo' })
  try {
    const token = tempo.tokens.USDC_E ?? '0x'
    const recipient = freshAddress()
    await fundToken(tempo, 'USDC_E', payer.address, 5_000n)
    await fundFees(tempo, sponsor.address)
    const handedIn = await signedByPayer({ recipient, amount: 5_000n, token, chainId: tempo.chainId })
    const receipt = await broadcast(await sponsored(handedIn, sponsor), tempo)

    expect(receipt).toMatchObject({ status: 'success' })
    expect(feeTransfers(receipt)).toEqual([{ token: pathUsd, from: sponsor.address, amount: feeOf(receipt) }])
    expect(await tokenBalance(tempo, 'USDC_E', recipient)).toBe(5_000n)
    expect(await tokenBalance(tempo, 'USDC_E', payer.address)).toBe(0n)
  } finally {
    await tempo.stop()
  }
})

const ordinaryFees = {
  type: 'eip1559',
  gas: 1_000_000n,
  maxFeePerGas: 20_000_000_000n,
  maxPriorityFeePerGas: 0n,
} as const

/** Mines a later transaction of the same payer, so an earlier one would have been mined before it. */
async function mineAnother(): Promise<void> {
  const later = await signedByPayer({ recipient: freshAddress(), amount: 1n, feeToken: pathUsd })
  expect(await broadcast(later)).toMatchObject({ status: 'success' })
}

type Receipt = Transaction.TransactionReceipt
type PayerTransfer = {
  recipient: Address
  amount: bigint
  feeToken?: Address
  validSeconds?: number
  token?: Address
  chainId?: number
}

/** The payer's part: with a fee token they pay the fee (0x76), without one a sponsor does (0x78). */
async function signedByPayer(transfer: PayerTransfer): Promise<Hex> {
  const { recipient, amount, feeToken, validSeconds = 25, token, chainId = 42_431 } = transfer
  const transaction = {
    ...ordinaryFees,
    type: 'tempo',
    chainId,
    calls: [transferCall(recipient, amount, token)],
    nonceKey: expiringNonce,
    nonce: 0,
    validBefore: Math.floor(Date.now() / 1_000) + validSeconds,
    from: payer.address,
    ...(feeToken === undefined ? { feePayer: true as const } : { feeToken }),
  } as const
  return payer.signTransaction(transaction, { serializer: Transaction.serialize })
}

/**
 * The sponsor's half: decodes, signs the domain 0x78 through the digest signer, returns the raw transaction of type
 * 0x76.
 */
function sponsored(handedIn: Hex, feePayer: LocalAccount, feeToken: Address = pathUsd): Promise<Hex> {
  return Transaction.serialize({ ...tempoOf(handedIn), feeToken, feePayer })
}

/** The signer, recovered from the signature. The address in a 0x78 is only claimed by the payer. */
async function senderOf(handedIn: Hex): Promise<Address> {
  const transaction = tempoOf(handedIn)
  const { signature } = transaction
  if (signature?.type !== 'secp256k1') throw new Error('expected a secp256k1 signature')
  const digest = keccak256(
    await Transaction.serialize({ ...transaction, signature: undefined, feePayerSignature: null }),
  )
  const { r, s, yParity } = signature.signature
  return recoverAddress({ hash: digest, signature: { r: hex32(r), s: hex32(s), yParity } })
}

function tempoOf(raw: Hex) {
  return Transaction.deserialize(tempoRaw(raw))
}

function tempoRaw(raw: string): `0x76${string}` | `0x78${string}` {
  return raw.startsWith('0x78') ? `0x78${raw.slice(4)}` : `0x76${raw.slice(4)}`
}

/** An account that signs only 32-byte digests, as a key in custody does. */
function digestSigner(privateKey: Hex): LocalAccount {
  const refuse = () => Promise.reject(new Error('it signs digests only'))
  return toAccount({
    address: privateKeyToAccount(privateKey).address,
    sign: ({ hash }) => sign({ hash, privateKey, to: 'hex' }),
    signMessage: refuse,
    signTransaction: refuse,
    signTypedData: refuse,
  })
}

function transferCall(recipient: Address, amount: bigint, token: Address = pathUsd) {
  const data = encodeFunctionData({ abi: memoAbi, functionName: 'transferWithMemo', args: [recipient, amount, memo] })
  return { to: token, data } as const
}

async function broadcast(serializedTransaction: Hex, on: DevChain = chain): Promise<Receipt> {
  return client(on).sendRawTransactionSync({ serializedTransaction })
}

/** anvil's receipt always names the sender as fee payer; the transfer to the fee manager shows the actual payer. */
function feeTransfers({ logs }: Receipt) {
  return parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs })
    .filter(({ args }) => isAddressEqual(args.to, feeManager))
    .map(({ address, args }) => ({ token: getAddress(address), from: getAddress(args.from), amount: args.value }))
}

/** Attodollars per gas times gas, in the token's smallest unit, rounded up. */
function feeOf({ gasUsed, effectiveGasPrice }: Receipt): bigint {
  return (gasUsed * effectiveGasPrice + attoPerUnit - 1n) / attoPerUnit
}

async function balances(): Promise<{ payer: bigint; sponsor: bigint }> {
  return {
    payer: await tokenBalance(chain, 'pathUSD', payer.address),
    sponsor: await tokenBalance(chain, 'pathUSD', sponsor.address),
  }
}

function client(on: DevChain) {
  return createPublicClient({ chain: tempoModerato, transport: http(on.rpcUrl) })
}

function hex32(value: bigint): Hex {
  return numberToHex(value, { size: 32 })
}

function freshAddress(): Address {
  return privateKeyToAccount(generatePrivateKey()).address
}

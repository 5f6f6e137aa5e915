import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  defineChain,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  http,
  multicall3Abi,
  parseAbi,
  parseEther,
  parseSignature,
  serializeErc6492Signature,
  toHex,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type DevChain,
  deploySmartWallet,
  devAccount,
  fundNative,
  fundToken,
  multicall3Address,
  sendFromDevAccount,
  smartWalletAddress,
  smartWalletDeployment,
  startChain,
  tokenBalance,
} from '../src/index.ts'

const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature)',
  'function nonces(address owner) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function blacklist(address account)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
])

const transferFields = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const

type Authorization = {
  from: Address
  to: Address
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
}

const never = 2n ** 48n
const merchant = privateKeyToAccount(generatePrivateKey()).address
let chain: DevChain
let token: Address
let domain: { name: string; version: string; chainId: number; verifyingContract: Address }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  token = chain.tokens.USDC ?? '0x'
  domain = { name: 'USDC', version: '2', chainId: chain.chainId, verifyingContract: token }
})
afterAll(() => chain.stop())

test('the token signs under the domain that EIP-712 gives for its name, version, chain and address', async () => {
  const read = { address: token, abi } as const
  expect(await reader().readContract({ ...read, functionName: 'DOMAIN_SEPARATOR' })).toBe(domainSeparator({ domain }))
  expect(await reader().readContract({ ...read, functionName: 'name' })).toBe('USDC')
  expect(await reader().readContract({ ...read, functionName: 'version' })).toBe('2')
  expect(await reader().readContract({ ...read, functionName: 'decimals' })).toBe(6)
})

test('a signed authorization moves exactly its money, once; a replay reverts with the reason', async () => {
  const payer = await aFundedPayer(1_000_000n)
  const authorization = authorize(payer.address, { value: 10_000n })
  const before = await tokenBalance(chain, 'USDC', merchant)
  const gasUsed = await settle(authorization, await sign(payer, authorization))

  expect(await tokenBalance(chain, 'USDC', payer.address)).toBe(990_000n)
  expect((await tokenBalance(chain, 'USDC', merchant)) - before).toBe(10_000n)
  const used = { address: token, abi, functionName: 'authorizationState' } as const
  expect(await reader().readContract({ ...used, args: [payer.address, authorization.nonce] })).toBe(true)
  expect(await whyNot(authorization, await sign(payer, authorization))).toBe(
    'FiatTokenV2: authorization is used or canceled',
  )
  expect(gasUsed).toBeGreaterThan(60_000n)
  expect(gasUsed).toBeLessThan(110_000n)
})

test('the overload with v, r and s moves money as well', async () => {
  const payer = await aFundedPayer(5n)
  const { from, to, value, validAfter, validBefore, nonce } = authorize(payer.address, { value: 5n })
  const { r, s, yParity } = parseSignature(await sign(payer, { from, to, value, validAfter, validBefore, nonce }))
  await send([from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s])
  expect(await tokenBalance(chain, 'USDC', payer.address)).toBe(0n)
})

test('every invalid call is refused with the reason that the real token gives', async () => {
  const payer = await aFundedPayer(100n)
  const stranger = privateKeyToAccount(generatePrivateKey())
  const reason = async (changes: Partial<Authorization>, signer = payer) => {
    const authorization = authorize(payer.address, { value: 1n, ...changes })
    return whyNot(authorization, await sign(signer, authorization))
  }
  expect(await reason({ validAfter: never - 1n })).toBe('FiatTokenV2: authorization is not yet valid')
  expect(await reason({ validBefore: 1n })).toBe('FiatTokenV2: authorization is expired')
  expect(await reason({ value: 101n })).toBe('ERC20: transfer amount exceeds balance')
  expect(await reason({}, stranger)).toBe('FiatTokenV2: invalid signature')
  expect(await reason({ to: '0x0000000000000000000000000000000000000000' })).toBe('ERC20: transfer to the zero address')
  const authorization = authorize(payer.address, { value: 1n })
  const signature = await sign(payer, authorization)
  expect(await whyNot({ ...authorization, value: 2n }, signature)).toBe('FiatTokenV2: invalid signature')
  expect(await whyNot(authorization, mirror(signature))).toBe("ECRecover: invalid signature 's' value")
  expect(await whyNot(authorization, `${signature}00`)).toBe('ECRecover: invalid signature length')

  await sendFromDevAccount(chain, token, encodeFunctionData({ abi, functionName: 'blacklist', args: [payer.address] }))
  expect(await reason({})).toBe('Blacklistable: account is blacklisted')
})

test('a canceled authorization pays nothing, and only its payee may use one by receiveWithAuthorization', async () => {
  const payer = await aFundedPayer(100n)
  const authorization = authorize(payer.address, { value: 1n })
  const cancel = { authorizer: payer.address, nonce: authorization.nonce }
  const types = {
    CancelAuthorization: [
      { name: 'authorizer', type: 'address' },
      { name: 'nonce', type: 'bytes32' },
    ],
  } as const
  const cancellation = await payer.signTypedData({ domain, types, primaryType: 'CancelAuthorization', message: cancel })
  const args = [payer.address, authorization.nonce, cancellation] as const
  await sendFromDevAccount(chain, token, encodeFunctionData({ abi, functionName: 'cancelAuthorization', args }))
  expect(await whyNot(authorization, await sign(payer, authorization))).toBe(
    'FiatTokenV2: authorization is used or canceled',
  )

  const other = authorize(payer.address, { value: 1n })
  const signature = await payer.signTypedData({
    domain,
    types: { ReceiveWithAuthorization: transferFields },
    primaryType: 'ReceiveWithAuthorization',
    message: other,
  })
  const { from, to, value, validAfter, validBefore, nonce } = other
  const call = {
    address: token,
    abi,
    functionName: 'receiveWithAuthorization',
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  } as const
  const refused = reader().simulateContract({ ...call, account: devAccount.address })
  expect(await reasonOf(refused)).toBe('FiatTokenV2: caller must be the payee')
  await reader().simulateContract({ ...call, account: merchant })
})

test('a permit allows exactly what was signed, once', async () => {
  const payer = await aFundedPayer(100n)
  const message = { owner: payer.address, spender: merchant, value: 40n, nonce: 0n, deadline: never }
  const types = {
    Permit: [
      { name: 'owner', type: 'address' },
      { name: 'spender', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'nonce', type: 'uint256' },
      { name: 'deadline', type: 'uint256' },
    ],
  } as const
  const signature = await payer.signTypedData({ domain, types, primaryType: 'Permit', message })
  const args = [payer.address, merchant, 40n, never, signature] as const
  await sendFromDevAccount(chain, token, encodeFunctionData({ abi, functionName: 'permit', args }))
  const read = { address: token, abi, functionName: 'allowance', args: [payer.address, merchant] } as const
  expect(await reader().readContract(read)).toBe(40n)
  const again = reader().simulateContract({ address: token, abi, functionName: 'permit', args })
  expect(await reasonOf(again)).toBe('EIP2612: invalid signature')
})

test("a contract account pays with its owner's signature (EIP-1271), and with nobody else's", async () => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const wallet = await deploySmartWallet(chain, owner.address, 1n)
  await fundToken(chain, 'USDC', wallet, 50n)
  const authorization = authorize(wallet, { value: 50n })
  const stranger = privateKeyToAccount(generatePrivateKey())

  expect(await whyNot(authorization, await sign(stranger, authorization))).toBe('FiatTokenV2: invalid signature')
  await settle(authorization, await sign(owner, authorization))
  expect(await tokenBalance(chain, 'USDC', wallet)).toBe(0n)
})

test('the signature of a contract account that does not exist yet can be checked (EIP-6492)', async () => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const wallet = await smartWalletAddress(chain, owner.address, 2n)
  const message = authorize(wallet, { value: 1n })
  const { factory, data } = smartWalletDeployment(owner.address, 2n)
  const inner = await sign(owner, message)
  const signature = serializeErc6492Signature({ address: factory, data, signature: inner })
  const types = { TransferWithAuthorization: transferFields }
  const typed = { address: wallet, domain, types, primaryType: 'TransferWithAuthorization', message } as const

  expect(await reader().getCode({ address: wallet })).toBeUndefined()
  expect(await reader().verifyTypedData({ ...typed, signature })).toBe(true)
  const wrong = { ...message, value: 2n }
  expect(await reader().verifyTypedData({ ...typed, message: wrong, signature })).toBe(false)
  expect(await deploySmartWallet(chain, owner.address, 2n)).toBe(wallet)
})

test('Multicall3 answers at its address, so that one bad authorization fails alone', async () => {
  const call = { target: token, allowFailure: true, callData: '0x313ce567' } as const
  const answers = await reader().readContract({
    address: multicall3Address,
    abi: multicall3Abi,
    functionName: 'aggregate3',
    args: [[call, { ...call, callData: '0xdeadbeef' }]],
  })
  expect(answers.map(({ success }) => success)).toEqual([true, false])
})

function reader() {
  return createPublicClient({ chain: described(), transport: http(chain.rpcUrl), pollingInterval: 20 })
}

function described() {
  return defineChain({
    id: chain.chainId,
    name: chain.network,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [chain.rpcUrl] } },
  })
}

async function aFundedPayer(rawAmount: bigint): Promise<PrivateKeyAccount> {
  const payer = privateKeyToAccount(generatePrivateKey())
  await fundToken(chain, 'USDC', payer.address, rawAmount)
  return payer
}

function authorize(from: Address, changes: Partial<Authorization>): Authorization {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  return { from, to: merchant, value: 0n, validAfter: 0n, validBefore: never, nonce, ...changes }
}

function sign(signer: PrivateKeyAccount, message: Authorization): Promise<Hex> {
  const types = { TransferWithAuthorization: transferFields }
  return signer.signTypedData({ domain, types, primaryType: 'TransferWithAuthorization', message })
}

/** The other valid signature of the same message on the curve. */
function mirror(signature: Hex): Hex {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const { r, s, yParity } = parseSignature(signature)
  const other = (order - BigInt(s)).toString(16).padStart(64, '0')
  return `${r}${other}${yParity === 0 ? '1c' : '1b'}`
}

async function settle(authorization: Authorization, signature: Hex): Promise<bigint> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return send([from, to, value, validAfter, validBefore, nonce, signature])
}

type TransferArguments =
  | readonly [Address, Address, bigint, bigint, bigint, Hex, Hex]
  | readonly [Address, Address, bigint, bigint, bigint, Hex, number, Hex, Hex]

/** Broadcasts from an account unrelated to the payment. Returns the gas used. */
async function send(args: TransferArguments): Promise<bigint> {
  const account = privateKeyToAccount(generatePrivateKey())
  await fundNative(chain, account.address, parseEther('1'))
  const wallet = createWalletClient({ account, chain: described(), transport: http(chain.rpcUrl) })
  const hash = await wallet.writeContract({ address: token, abi, functionName: 'transferWithAuthorization', args })
  const receipt = await reader().waitForTransactionReceipt({ hash })
  expect(receipt.status).toBe('success')
  return receipt.gasUsed
}

function whyNot(authorization: Authorization, signature: Hex): Promise<string | undefined> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
  const call = { address: token, abi, functionName: 'transferWithAuthorization', args } as const
  return reasonOf(reader().simulateContract({ ...call, account: devAccount.address }))
}

async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  )
  if (!(error instanceof BaseError)) return undefined
  const reverted = error.walk((cause) => cause instanceof ContractFunctionRevertedError)
  return reverted instanceof ContractFunctionRevertedError ? reverted.reason : error.shortMessage
}

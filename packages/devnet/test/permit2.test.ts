import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { x402Client } from '@x402/core/client'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import {
  permit2WitnessTypes,
  toClientEvmSigner,
  toFacilitatorEvmSigner,
  uptoPermit2WitnessTypes,
  x402ExactPermit2ProxyABI,
  x402ExactPermit2ProxyAddress,
  x402UptoPermit2ProxyABI,
  x402UptoPermit2ProxyAddress,
} from '@x402/evm'
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client'
import { ExactEvmScheme as ExactFacilitator } from '@x402/evm/exact/facilitator'
import { UptoEvmScheme as UptoClient } from '@x402/evm/upto/client'
import { UptoEvmScheme as UptoFacilitator } from '@x402/evm/upto/facilitator'
import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  erc20Abi,
  http,
  maxUint256,
  parseAbi,
  publicActions,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { verifyTypedData } from 'viem/actions'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type DevChain,
  exactPermit2ProxyAddress,
  fundNative,
  fundToken,
  permit2Address,
  startChain,
  tokenBalance,
  uptoPermit2ProxyAddress,
} from '../src/index.ts'

const permit2Errors = parseAbi([
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error SignatureExpired(uint256 signatureDeadline)',
])
const network = 'eip155:84532'
const never = 2n ** 48n
const nobody = '0x0000000000000000000000000000000000000000'
const stateDir = mkdtempSync(path.join(os.tmpdir(), 'purser-permit2-'))
const stateFile = path.join(stateDir, 'state.json')
const merchant = privateKeyToAccount(generatePrivateKey()).address
let chain: DevChain
let facilitator: OfficialFacilitator

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia', stateFile })
  facilitator = await anOfficialFacilitator()
})
afterAll(async () => {
  await chain.stop()
  rmSync(stateDir, { recursive: true, force: true })
})

test('exact over Permit2: what the official client signs, the official facilitator settles, to the unit', async () => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const requirements = exact('10000')
  const payload = await sign(client, requirements)
  const before = await tokenBalance(chain, 'USDC', merchant)

  expect(await facilitator.verify(payload, requirements)).toMatchObject({ isValid: true, payer })
  expect(await facilitator.settle(payload, requirements)).toMatchObject({ success: true, payer, network })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(40_000n)
  expect((await tokenBalance(chain, 'USDC', merchant)) - before).toBe(10_000n)
})

test('exact over Permit2 without an allowance is refused with that reason, and paid when the client includes a permit', async () => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: 0n })
  const requirements = exact('10000')
  const bare = await sign(client, requirements)
  expect(await facilitator.verify(bare, requirements)).toMatchObject({ invalidReason: 'permit2_allowance_required' })

  const withPermit = await sign(client, requirements, { eip2612GasSponsoring: { info: {}, schema: {} } })
  expect(withPermit.extensions).toHaveProperty('eip2612GasSponsoring')
  expect(await facilitator.settle(withPermit, requirements)).toMatchObject({ success: true })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(40_000n)
  expect(await allowance(payer)).toBe(0n)
})

test('upto: the facilitator charges what was used, and the rest stays with the payer', async () => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const most = upto('20000', facilitator.address)
  const payload = await sign(client, most)
  const before = await tokenBalance(chain, 'USDC', merchant)

  expect(await facilitator.verify(payload, most)).toMatchObject({ isValid: true, payer })
  const used = { ...most, amount: '1858' }
  expect(await facilitator.settle(payload, used)).toMatchObject({ success: true, amount: '1858' })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(48_142n)
  expect((await tokenBalance(chain, 'USDC', merchant)) - before).toBe(1_858n)
})

test('upto: nobody but the facilitator that the payer named can take the money', async () => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const stranger = await anOfficialFacilitator()
  const requirements = upto('20000', facilitator.address)
  const payload = await sign(client, requirements)
  expect(await stranger.verify(payload, requirements)).toMatchObject({ invalidReason: 'upto_facilitator_mismatch' })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(50_000n)
})

test.each(['exact', 'upto'] as const)('%s: a signature that paid once cannot pay again', async (scheme) => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const requirements = scheme === 'exact' ? exact('10000') : upto('10000', facilitator.address)
  const payload = await sign(client, requirements)
  expect(await facilitator.settle(payload, requirements)).toMatchObject({ success: true })
  // A facilitator that has never seen it: the chain refuses.
  const another = await anOfficialFacilitator(facilitator.account)
  const why = 'permit2_simulation_failed'
  expect(await another.verify(payload, requirements)).toMatchObject({ isValid: false, invalidReason: why })
  expect(await another.settle(payload, requirements)).toMatchObject({ success: false, errorReason: why })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(40_000n)
})

test('the proxy of exact refuses what was not signed, with the errors of the real one', async () => {
  const { account } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const witness = { to: merchant, validAfter: 0n }
  const signed = { permit: permit(10_000n), owner: account.address, witness }
  const signature = await account.signTypedData({
    domain: permit2Domain(),
    types: permit2WitnessTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: { ...signed.permit, spender: x402ExactPermit2ProxyAddress, witness },
  })
  const whyNot = (changes: Partial<typeof signed>) => {
    const { permit, owner, witness } = { ...signed, ...changes }
    return reasonOf(
      reader().simulateContract({
        address: exactPermit2ProxyAddress,
        abi: [...x402ExactPermit2ProxyABI, ...permit2Errors],
        functionName: 'settle',
        args: [permit, owner, witness, signature],
        account: merchant,
      }),
    )
  }

  expect(await whyNot({})).toBeUndefined()
  expect(await whyNot({ permit: { ...signed.permit, permitted: { token: usdc(), amount: 0n } } })).toBe('InvalidAmount')
  expect(await whyNot({ permit: permit(10_001n) })).toBe('InvalidSigner')
  expect(await whyNot({ permit: { ...signed.permit, deadline: 1n } })).toBe('SignatureExpired')
  expect(await whyNot({ owner: nobody })).toBe('InvalidOwner')
  expect(await whyNot({ owner: merchant })).toBe('InvalidSigner')
  expect(await whyNot({ witness: { ...witness, to: nobody } })).toBe('InvalidDestination')
  expect(await whyNot({ witness: { ...witness, to: account.address } })).toBe('InvalidSigner')
  expect(await whyNot({ witness: { ...witness, validAfter: never } })).toBe('PaymentTooEarly')
})

test('the proxy of upto pays at most what was signed, and only when the named facilitator sends it', async () => {
  const { account } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const witness = { to: merchant, facilitator: facilitator.address, validAfter: 0n }
  const signature = await account.signTypedData({
    domain: permit2Domain(),
    types: uptoPermit2WitnessTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: { ...permit(10_000n), spender: x402UptoPermit2ProxyAddress, witness },
  })
  const whyNot = (amount: bigint, sender: Address, changes: Partial<typeof witness> = {}) =>
    reasonOf(
      reader().simulateContract({
        address: uptoPermit2ProxyAddress,
        abi: [...x402UptoPermit2ProxyABI, ...permit2Errors],
        functionName: 'settle',
        args: [permit(10_000n), amount, account.address, { ...witness, ...changes }, signature],
        account: sender,
      }),
    )

  expect(await whyNot(10_000n, facilitator.address)).toBeUndefined()
  expect(await whyNot(10_001n, facilitator.address)).toBe('AmountExceedsPermitted')
  expect(await whyNot(1n, merchant)).toBe('UnauthorizedFacilitator')
  expect(await whyNot(1n, merchant, { facilitator: merchant })).toBe('InvalidSigner')
  expect(await whyNot(1n, facilitator.address, { to: facilitator.address })).toBe('InvalidSigner')
})

test('after a restart on its state file the chain keeps the used nonces, and accepts new payments', async () => {
  const { payer, client } = await aPayer({ balance: 50_000n, allowance: maxUint256 })
  const requirements = exact('10000')
  const [used, unused] = [await sign(client, requirements), await sign(client, requirements)]
  expect(await facilitator.settle(used, requirements)).toMatchObject({ success: true })
  await chain.stop()
  chain = await startChain({ network: 'base-sepolia', stateFile })

  const restarted = await anOfficialFacilitator(facilitator.account)
  expect(await restarted.settle(used, requirements)).toMatchObject({ success: false })
  expect(await restarted.settle(unused, requirements)).toMatchObject({ success: true })
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(30_000n)
})

type OfficialFacilitator = x402Facilitator & { address: Address; account: PrivateKeyAccount }

async function anOfficialFacilitator(
  account = privateKeyToAccount(generatePrivateKey()),
): Promise<OfficialFacilitator> {
  await fundNative(chain, account.address, 10n ** 18n)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(chain.rpcUrl), pollingInterval: 50 })
  const full = wallet.extend(publicActions)
  const signer = toFacilitatorEvmSigner({
    ...full,
    address: account.address,
    verifyTypedData: (signed) => verifyTypedData(full, signed),
  })
  const made = new x402Facilitator()
    .register(network, new ExactFacilitator(signer, { simulateInSettle: true }))
    .register(network, new UptoFacilitator(signer))
  return Object.assign(made, { address: account.address, account })
}

async function aPayer({ balance, allowance }: { balance: bigint; allowance: bigint }) {
  const account = privateKeyToAccount(generatePrivateKey())
  await fundToken(chain, 'USDC', account.address, balance)
  await fundNative(chain, account.address, 10n ** 18n)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(chain.rpcUrl) })
  const call = { address: usdc(), abi: erc20Abi, functionName: 'approve', args: [permit2Address, allowance] } as const
  if (allowance > 0n) await reader().waitForTransactionReceipt({ hash: await wallet.writeContract(call) })
  const signer = toClientEvmSigner(account, reader())
  const client = new x402Client().register(network, new ExactClient(signer)).register(network, new UptoClient(signer))
  return { account, payer: account.address, client }
}

function sign(client: x402Client, requirements: PaymentRequirements, extensions = {}): Promise<PaymentPayload> {
  const resource = { url: 'https://shop.example/report' }
  return client.createPaymentPayload({ x402Version: 2, resource, accepts: [requirements], extensions })
}

function permit(amount: bigint) {
  return { permitted: { token: usdc(), amount }, nonce: 1n, deadline: never }
}

function permit2Domain() {
  return { name: 'Permit2', chainId: chain.chainId, verifyingContract: permit2Address } as const
}

/** The name of the error that a simulation reverts with; undefined when it succeeds. */
async function reasonOf(simulation: Promise<unknown>): Promise<string | undefined> {
  try {
    await simulation
    return undefined
  } catch (error) {
    const reverted = error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError)
    if (reverted instanceof ContractFunctionRevertedError) return reverted.data?.errorName ?? reverted.signature
    throw error
  }
}

function exact(amount: string): PaymentRequirements {
  const extra = { name: 'USDC', version: '2', assetTransferMethod: 'permit2' }
  return { scheme: 'exact', network, amount, asset: usdc(), payTo: merchant, maxTimeoutSeconds: 60, extra }
}

function upto(amount: string, facilitatorAddress: Address): PaymentRequirements {
  const extra = { name: 'USDC', version: '2', assetTransferMethod: 'permit2', facilitatorAddress }
  return { scheme: 'upto', network, amount, asset: usdc(), payTo: merchant, maxTimeoutSeconds: 60, extra }
}

function allowance(owner: Address): Promise<bigint> {
  return reader().readContract({
    address: usdc(),
    abi: erc20Abi,
    functionName: 'allowance',
    args: [owner, permit2Address],
  })
}

function reader() {
  return createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl), pollingInterval: 50 })
}

function usdc(): Address {
  return chain.tokens.USDC ?? '0x'
}

import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { permit2WitnessTypes, toFacilitatorEvmSigner, x402ExactPermit2ProxyABI } from '@x402/evm'
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { UptoEvmScheme } from '@x402/evm/upto/facilitator'
import {
  type Address,
  createWalletClient,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  http,
  parseAbi,
  publicActions,
} from 'viem'
import { verifyTypedData } from 'viem/actions'
import { baseSepolia } from 'viem/chains'
import { z } from 'zod'
import { id } from '../../server/src/platform/ids.ts'
import { type DevChain, exactPermit2ProxyAddress, permit2Address } from '../src/index.ts'
import type { Permit2Payer } from './official-permit2-payers.ts'

const uint256Max = 2n ** 256n - 1n

/** The columns read from a payment's row. */
export const Logged = z.object({
  id: id('pay'),
  status: z.string(),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
  rawAmount: z.string(),
})

const Signed = z.object({
  signature: z.templateLiteral(['0x', z.string()]),
  permit2Authorization: z.object({
    from: z.templateLiteral(['0x', z.string()]),
    permitted: z.object({ token: z.templateLiteral(['0x', z.string()]), amount: z.string() }),
    nonce: z.string(),
    deadline: z.string(),
    witness: z.object({ to: z.templateLiteral(['0x', z.string()]), validAfter: z.string() }),
  }),
})

/** Signs a permit over the asset of the requirements with this nonce. The official client draws its own nonces. */
export async function signedWithNonce(
  chain: DevChain,
  { address, account }: Permit2Payer,
  requirements: PaymentRequirements,
  nonce: string,
): Promise<PaymentPayload> {
  const deadline = String(Math.floor(Date.now() / 1000) + requirements.maxTimeoutSeconds)
  const permitted = { token: requirements.asset as Address, amount: requirements.amount }
  const witness = { to: requirements.payTo as Address, validAfter: '0' }
  const signature = await account.signTypedData({
    domain: { name: 'Permit2', chainId: chain.chainId, verifyingContract: permit2Address },
    types: permit2WitnessTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { ...permitted, amount: BigInt(permitted.amount) },
      spender: exactPermit2ProxyAddress,
      nonce: BigInt(nonce),
      deadline: BigInt(deadline),
      witness: { ...witness, validAfter: 0n },
    },
  })
  const permit2Authorization = { from: address, permitted, spender: exactPermit2ProxyAddress, nonce, deadline, witness }
  return { x402Version: 2, accepted: requirements, payload: { signature, permit2Authorization } }
}

export function nonceOf(payload: PaymentPayload): string {
  return Signed.parse(payload.payload).permit2Authorization.nonce
}

/** The exact proxy's call, which anybody may send. */
export function settleData(payload: PaymentPayload): Hex {
  const { signature, permit2Authorization } = Signed.parse(payload.payload)
  const { from, permitted, nonce, deadline, witness } = permit2Authorization
  const permit = {
    permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
    nonce: BigInt(nonce),
    deadline: BigInt(deadline),
  }
  const args = [permit, from, { to: witness.to, validAfter: BigInt(witness.validAfter) }, signature] as const
  return encodeFunctionData({ abi: x402ExactPermit2ProxyABI, functionName: 'settle', args })
}

const SignedTransfer = z.object({
  signature: z.templateLiteral(['0x', z.string()]),
  authorization: z.object({
    from: z.templateLiteral(['0x', z.string()]),
    to: z.templateLiteral(['0x', z.string()]),
    value: z.string(),
    validAfter: z.string(),
    validBefore: z.string(),
    nonce: z.templateLiteral(['0x', z.string()]),
  }),
})

/** The token's call for a payment by EIP-3009, which anybody may send. */
export function authorizedTransferData(payload: PaymentPayload): Hex {
  const { signature, authorization } = SignedTransfer.parse(payload.payload)
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const abi = parseAbi([
    'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  ])
  const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature] as const
  return encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args })
}

export function giveUp(payload: PaymentPayload): Hex {
  const nonce = BigInt(nonceOf(payload))
  const abi = parseAbi(['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'])
  return encodeFunctionData({
    abi,
    functionName: 'invalidateUnorderedNonces',
    args: [nonce >> 8n, 1n << (nonce & 255n)],
  })
}

export function transferTo(to: Address): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, 10_000n] })
}

export function approvePermit2(): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [permit2Address, uint256Max] })
}

export function throughWallet(to: Address, data: Hex): Hex {
  const abi = parseAbi(['function execute(address to, uint256 value, bytes data) payable returns (bytes)'])
  return encodeFunctionData({ abi, functionName: 'execute', args: [to, 0n, data] })
}

export async function signedBy(
  signer: ConstructorParameters<typeof ExactClient>[0],
  requirements: PaymentRequirements,
): Promise<PaymentPayload> {
  const made = await new ExactClient(signer).createPaymentPayload(2, requirements)
  return { ...made, accepted: requirements, resource: { url: 'https://shop.example/report' } }
}

export function officialFacilitator(chain: DevChain, settler: Address, scheme: 'exact' | 'upto') {
  // It simulates as the settler, since upto's proxy accepts no other caller.
  const full = createWalletClient({ account: settler, chain: baseSepolia, transport: http(chain.rpcUrl) }).extend(
    publicActions,
  )
  const signer = toFacilitatorEvmSigner({
    ...full,
    address: settler,
    verifyTypedData: (signed) => verifyTypedData(full, signed),
  })
  return scheme === 'exact' ? new ExactEvmScheme(signer) : new UptoEvmScheme(signer)
}

import {
  type Address,
  bytesToHex,
  type Eip712Domain,
  type Hex,
  hexToBytes,
  type Network,
  type TokenInfo,
  type TransferSignature,
  tokenByAddress,
} from '@purser/protocol'
import type { WalletSigner } from '../../custody/signer.ts'
import { unixSeconds } from '../../platform/clock.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import { dayOf, type GasChange } from '../plans/index.ts'
import { type AuthorizationPayload, authorizationOf } from '../relayer/index.ts'

/** Gas that one gasless transfer reserves of the day's budget; when it ends, the actual gas is charged. */
export const gasOfGasless = 100_000n

/** Authorization to move an account's money to one recipient, once (EIP-3009). It is stored completely before it is signed. */
export interface GaslessMove {
  readonly asset: Address
  readonly fromAddress: Address
  readonly toAddress: Address
  /** In the token's smallest unit. */
  readonly rawAmount: bigint
  /** 32 bytes. */
  readonly nonce: Uint8Array
  readonly validBefore: Date
}

/** Whether the settler sends transfers of this token that their accounts sign. */
export function isGasless(network: Network, token: TokenInfo): boolean {
  return network.settlesEip3009 && token.eip3009 && token.eip712 !== null
}

/** Signs with the account's key, for the relayer. Signing twice is harmless: the nonce is stored, and a token accepts it once. */
export async function signGasless(
  signer: Pick<WalletSigner, 'signTransferWithAuthorization'>,
  network: Network,
  { asset, fromAddress, toAddress, rawAmount, nonce, validBefore }: GaslessMove,
): Promise<AuthorizationPayload> {
  const unsigned = {
    kind: 'eip3009' as const,
    token: asset,
    from: fromAddress,
    to: toAddress,
    value: rawAmount.toString(),
    validAfter: '0',
    validBefore: unixSeconds(validBefore).toString(),
    nonce: bytesToHex(nonce),
    deployment: null,
  }
  const signature = await signer.signTransferWithAuthorization(domainOf(network, asset), authorizationOf(unsigned))
  return { ...unsigned, signature: signatureOf(signature) }
}

/** The domain under which the token checks signatures. */
function domainOf(network: Network, asset: Address): Eip712Domain {
  const eip712 = tokenByAddress(network, asset)?.eip712
  if (eip712 === undefined || eip712 === null) throw new Error(`${asset} on ${network.name} takes no authorizations`)
  return { ...eip712, chainId: network.chainId, verifyingContract: asset }
}

/** Splits 65 bytes into r, s and v. */
function signatureOf(text: Hex): TransferSignature & { readonly kind: 'ecdsa' } {
  const bytes = hexToBytes(text)
  const v = bytes[64]
  if (v !== 27 && v !== 28) throw new Error('a signature has no v')
  return { kind: 'ecdsa', v, r: bytesToHex(bytes.subarray(0, 32)), s: bytesToHex(bytes.subarray(32, 64)) }
}

/** The budget share of a move, as it was stored. */
export interface BudgetedMove {
  readonly organisationId: OrganisationId
  readonly environment: 'test' | 'live'
  readonly network: string
  readonly createdAt: Date
}

/** The change of the budget of the day on which it was stored, which contains its reservation. */
export function budgetChange(
  { organisationId, environment, network, createdAt }: BudgetedMove,
  nanoUsd: bigint,
): GasChange {
  return { tenant: { organisationId, environment }, network, day: dayOf(createdAt), nanoUsd }
}

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
import type { WalletSigner } from '../../custody/wallet-keys.ts'
import { unixSeconds } from '../../platform/clock.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import { dayOf, type GasChange } from '../plans/index.ts'
import { type AuthorizationPayload, authorizationOf } from '../relayer/index.ts'

/** Gas that one gasless transfer reserves of the day's budget; at its end it is charged with what it really used. */
export const gasOfGasless = 100_000n

/** Money that an account lets anybody move to one place, once (EIP-3009). All of it is stored before anybody is asked to sign. */
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

/** Has the account's key sign, for the relayer. Signing twice gives away nothing: the nonce is stored, and a token takes it once. */
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

/** From 65 bytes: r, s and v. */
function signatureOf(text: Hex): TransferSignature & { readonly kind: 'ecdsa' } {
  const bytes = hexToBytes(text)
  const v = bytes[64]
  if (v !== 27 && v !== 28) throw new Error('a signature has no v')
  return { kind: 'ecdsa', v, r: bytesToHex(bytes.subarray(0, 32)), s: bytesToHex(bytes.subarray(32, 64)) }
}

/** What a budget is charged for, as it was stored. */
export interface BudgetedMove {
  readonly organisationId: OrganisationId
  readonly environment: 'test' | 'live'
  readonly network: string
  readonly createdAt: Date
}

/** The change of the budget of the day on which it was stored, in which what it reserved is as well. */
export function budgetChange(
  { organisationId, environment, network, createdAt }: BudgetedMove,
  nanoUsd: bigint,
): GasChange {
  return { tenant: { organisationId, environment }, network, day: dayOf(createdAt), nanoUsd }
}

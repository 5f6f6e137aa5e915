import { type Address, l1FeeOf, tokenByAddress } from '@purser/protocol'
import type { Fees } from '../fees/fees.ts'
import type { Chain, FeeSponsor, SignedTransaction, TempoFields, TempoTransaction } from '../port.ts'
import type { LaneSigner } from './port.ts'
import type { CallData, TransactionRow } from './store.ts'

/** The signers of the transactions of a network's lanes. */
export interface SigningParts {
  readonly chain: Pick<Chain, 'network'>
  /** The signer of a resumed account. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of sponsored transactions. Without a sponsor, those are not sent. */
  readonly sponsor?: FeeSponsor | undefined
}

/**
 * Signs a lane's transaction in its network's format: EIP-1559, or Tempo's type 0x76 on networks without a native coin, whose fee is paid in the
 * row's fee token. Without a fee token, the called token pays, which the account has because it sends it. Throws when a required signer is missing;
 * nothing is sent then. `dataGas` for each 256 bytes (see `OfferedFees`) is added to the stored gas limit, which is for the execution.
 */
export function signForm(
  parts: SigningParts,
  row: TransactionRow,
  { data, before, fees, dataGas }: CallData & { readonly fees: Fees; readonly dataGas: bigint },
): Promise<SignedTransaction> {
  const { network } = parts.chain
  const { nonce, toAddress: to, value } = row
  const gasLimit = row.gasLimit + l1FeeOf(dataGas, row.dataBytes)
  const { chainId } = network
  const offered = { maxFeePerGas: fees.maxFee, maxPriorityFeePerGas: fees.priorityFee }
  if (network.nativeCoin !== null)
    return parts.signerOf(row.sender).signTransaction({ chainId, nonce, to, data, value, gasLimit, ...offered })
  if (to === null) throw new Error('a transaction without a recipient cannot be sent here')
  const calls = [...before, { to, value, data }]
  const times = { validBefore: undefined, validAfter: undefined }
  const fields = { chainId, calls, nonceKey: 0n, nonce, ...times, gasLimit, ...offered }
  if (row.isSponsored) return signSponsored(parts, row, fields)
  const feeToken = row.feeToken ?? tokenByAddress(network, to)?.address
  return signOwn(parts, row, { ...fields, feeToken, feePaidBy: 'sender' })
}

async function signOwn(parts: SigningParts, row: TransactionRow, fields: TempoFields): Promise<SignedTransaction> {
  const { raw, hash } = await signTempo(parts, row, fields)
  if (hash === undefined) throw new Error('a transaction whose sender pays the fee must have a hash')
  return { raw, hash }
}

/** The sponsor pays the fee and names the token. The planner has bounded the cost. */
async function signSponsored(
  parts: SigningParts,
  row: TransactionRow,
  fields: Omit<TempoFields, 'feeToken' | 'feePaidBy'>,
): Promise<SignedTransaction> {
  const { feeToken } = row
  if (parts.sponsor === undefined || feeToken === null)
    throw new Error('a sponsored transaction has no sponsor or no fee token')
  const own = await signTempo(parts, row, { ...fields, feeToken: undefined, feePaidBy: 'sponsor' })
  return parts.sponsor.signTempoFeePayer(own, feeToken)
}

async function signTempo(
  { signerOf }: SigningParts,
  { sender }: TransactionRow,
  fields: TempoFields,
): Promise<TempoTransaction> {
  const signed = await signerOf(sender).signTempoTransaction?.(fields)
  if (signed === undefined) throw new Error('the account has no signer for a network without a native coin')
  return signed
}

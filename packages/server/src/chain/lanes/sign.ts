import { tokenByAddress } from '@purser/protocol'
import type { Fees } from '../fees.ts'
import type { SignedTransaction, TempoFields, TempoTransaction } from '../port.ts'
import type { LaneParts } from './parts.ts'
import type { CallData, TransactionRow } from './store.ts'

/**
 * Signs a lane's transaction in its network's format: EIP-1559, or Tempo's type 0x76 on networks without a native coin, whose fee is paid in the
 * row's fee token. Without a fee token, the called token pays, which the account has because it sends it. Throws when a required signer is missing;
 * nothing is sent then.
 */
export function signForm(
  parts: LaneParts,
  row: TransactionRow,
  { data, before, fees }: CallData & { readonly fees: Fees },
): Promise<SignedTransaction> {
  const { network } = parts.chain
  const { nonce, toAddress: to, value, gasLimit } = row
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

async function signOwn(parts: LaneParts, row: TransactionRow, fields: TempoFields): Promise<SignedTransaction> {
  const { raw, hash } = await signTempo(parts, row, fields)
  if (hash === undefined) throw new Error('a transaction whose sender pays the fee must have a hash')
  return { raw, hash }
}

/** The sponsor pays the fee and names the token. The planner has bounded the cost. */
async function signSponsored(
  parts: LaneParts,
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
  { signerOf }: LaneParts,
  { sender }: TransactionRow,
  fields: TempoFields,
): Promise<TempoTransaction> {
  const signed = await signerOf(sender).signTempoTransaction?.(fields)
  if (signed === undefined) throw new Error('the account has no signer for a network without a native coin')
  return signed
}

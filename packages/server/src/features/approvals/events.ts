import { formatAmount } from '@purser/protocol'
import type { NewApproval } from './store.ts'

/** The members that all events of an approval have. */
export function payloadOf(row: Omit<NewApproval, 'createdAt'>) {
  const { id: approvalId, kind, subjectId, walletId, token, chain, recipient: to, note } = row
  const isWithdrawal = kind === 'withdrawal'
  return {
    approvalId,
    kind,
    transactionId: isWithdrawal ? null : subjectId,
    withdrawalId: isWithdrawal ? subjectId : null,
    walletId,
    amount: formatAmount(row.rawAmount, row.decimals),
    token,
    chain,
    to,
    note,
    requestedBy: row.apiKeyId ?? row.accountId,
  }
}

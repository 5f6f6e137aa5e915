import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { groupDecimal, isAmount } from '../../ui/format.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { useBankAccounts } from '../bank-accounts/queries.ts'
import { useManagedWallets } from '../transfers/wallets.ts'
import { emptyWithdrawal, WithdrawalForm, WithdrawalReview } from './withdrawal-form.tsx'

interface SheetProps {
  readonly onClose: () => void
  readonly onCreated: (withdrawalId: string) => void
}

/** Withdraws in two steps: a summary to review, then a confirmation. */
export function NewWithdrawalSheet({ onClose, onCreated }: SheetProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [draft, setDraft] = useState(emptyWithdrawal)
  // One Idempotency-Key for each review: a second press, or a press after a lost response, never withdraws twice.
  const [reviewKey, setReviewKey] = useState<string>()
  const wallet = useManagedWallets().data?.find(({ id }) => id === draft.walletId)
  const account = useBankAccounts().data?.find(({ id }) => id === draft.bankAccountId)
  const { amount, token, reference } = draft
  const isReady = wallet !== undefined && account !== undefined && token !== '' && isAmount(amount)
  const create = useMutation({
    mutationFn: ({ key }: { key: string }) => {
      if (wallet === undefined) throw new Error('the wallet is gone')
      const { id: fromWalletId, chain } = wallet
      const body = { fromWalletId, chain, amount, token, bankAccountId: draft.bankAccountId }
      return purser.withdrawals.create({ ...body, ...(reference !== '' && { reference }) }, { idempotencyKey: key })
    },
    onSuccess: ({ id }) => {
      toastDone(`Withdrawal of ${groupDecimal(amount)} ${token} is on its way`)
      void queries.invalidateQueries({ queryKey: ['withdrawals'] })
      onClose()
      onCreated(id)
    },
  })
  const change = () => {
    setReviewKey(undefined)
    create.reset()
  }
  return (
    <Sheet
      open
      onClose={onClose}
      title="Withdraw to a bank"
      footer={
        reviewKey === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button tone="primary" disabled={!isReady} onClick={() => setReviewKey(crypto.randomUUID())}>
              Review
            </Button>
          </>
        ) : (
          <>
            <Button onClick={change}>Change it</Button>
            <Button tone="primary" busy={create.isPending} onClick={() => create.mutate({ key: reviewKey })}>
              Withdraw {groupDecimal(amount)} {token}
            </Button>
          </>
        )
      }
    >
      <div className="flex flex-col gap-4">
        {reviewKey === undefined || wallet === undefined || account === undefined ? (
          <WithdrawalForm draft={draft} onChange={setDraft} />
        ) : (
          <WithdrawalReview draft={draft} wallet={wallet} account={account} />
        )}
        {create.error !== null && <ErrorBlock error={create.error} />}
      </div>
    </Sheet>
  )
}

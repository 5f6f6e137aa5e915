import type { BankAccount } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { accountLabel, bankAccountsKey } from './queries.ts'

/** Deletes a bank account, after a confirmation. */
export function DeleteAccountSheet({ account, onClose }: { account: BankAccount; onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => purser.withdrawals.bankAccounts.delete(account.id),
    onSuccess: () => {
      toastDone('The bank account is deleted')
      void queries.invalidateQueries({ queryKey: bankAccountsKey })
      onClose()
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Delete this bank account"
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button tone="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
            Delete {account.maskedAccount}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="font-medium break-words">{accountLabel(account)}</p>
        <p className="text-ink-2">
          Its details are deleted immediately and cannot be restored. No new withdrawal can be paid to it. Withdrawals
          in progress continue.
        </p>
        {remove.error !== null && <ErrorBlock error={remove.error} />}
      </div>
    </Sheet>
  )
}

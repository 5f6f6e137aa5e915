import type { Payment } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { actualNetwork } from '../../ui/explorer.ts'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { groupDecimal, isAmount, middleTruncate, networkName } from '../../ui/format.ts'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Amount, OnChain } from '../../ui/values.tsx'
import { paymentsKey } from './queries.ts'

/** Refunds a payment: states wallet, recipient and amount before the person confirms. */
export function RefundDialog({ payment, onClose }: { payment: Payment; onClose: () => void }) {
  const { purser, environment } = useWorkspace()
  const queries = useQueryClient()
  const [amount, setAmount] = useState(payment.amount)
  const [reason, setReason] = useState('')
  const [chosen, setChosen] = useState<string>()
  const network = actualNetwork(payment.chain, environment)
  const { paid, wallets } = useRefundingWallets(payment, network)
  const from = chosen ?? paid ?? wallets?.[0]?.id
  const { key, onError } = useIdempotencyKey()
  const refund = useMutation({
    mutationFn: () =>
      purser.payments.refund(
        payment.id,
        { amount, ...(reason !== '' && { reason }), ...(from !== undefined && { fromWalletId: from }) },
        { idempotencyKey: key },
      ),
    onError,
    onSuccess: ({ amount: paid, token }) => {
      toastDone(`Refund of ${groupDecimal(paid)} ${token} is on its way`)
      void queries.invalidateQueries({ queryKey: paymentsKey })
      onClose()
    },
  })
  const isReadable = isAmount(amount)
  return (
    <Dialog
      open
      onClose={onClose}
      title="Refund this payment"
      footer={
        <>
          <Button onClick={onClose}>Keep the payment</Button>
          <Button
            tone="primary"
            busy={refund.isPending}
            disabled={!isReadable || from === undefined}
            onClick={() => refund.mutate()}
          >
            Refund {isReadable ? groupDecimal(amount) : ''} {payment.token}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-2">
          A transfer leaves one of your managed wallets, under its policy. It cannot be reversed.
        </p>
        <Field
          label="Amount"
          hint={
            <>
              At most <Amount value={payment.amount} token={payment.token} />, over all refunds.
            </>
          }
          fault={isReadable ? undefined : 'Write a decimal amount above zero, such as 0.01.'}
        >
          {(wiring) => (
            <TextInput
              {...wiring}
              inputMode="decimal"
              value={amount}
              onChange={({ target }) => setAmount(target.value.trim())}
            />
          )}
        </Field>
        <Field
          label="From"
          fault={
            wallets?.length === 0
              ? `You have no managed wallet on ${networkName(network)}. Create one under Wallets.`
              : undefined
          }
        >
          {(wiring) => (
            <Select {...wiring} value={from ?? ''} onChange={({ target }) => setChosen(target.value)}>
              {wallets?.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name ?? middleTruncate(id)}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Reason" hint="For your records. The payer does not see it.">
          {(wiring) => (
            <TextInput {...wiring} maxLength={200} value={reason} onChange={({ target }) => setReason(target.value)} />
          )}
        </Field>
        <Facts>
          <Fact name="To">
            {payment.payer === null ? (
              'unknown'
            ) : (
              <OnChain value={payment.payer} network={payment.chain} kind="address" />
            )}
          </Fact>
        </Facts>
        {refund.error !== null && <ErrorBlock error={refund.error} />}
      </div>
    </Dialog>
  )
}

interface RefundingWallet {
  readonly id: string
  readonly name: string | null
}

/** Reads the managed wallets on the network that can pay the refund, with the one that was paid: `paid` is its id if it is managed. */
function useRefundingWallets({ walletId }: Payment, network: string) {
  const { purser, environment } = useWorkspace()
  const { data } = useQuery({
    queryKey: ['wallets', 'refunding', network],
    queryFn: async ({ signal }) => {
      const { items } = await purser.wallets.master.list({ limit: 100 }, { signal }).page()
      return items.filter(
        ({ chain, provisionStatus }) => actualNetwork(chain, environment) === network && provisionStatus === 'active',
      )
    },
  })
  const paid = walletId !== null && /^(?:mwt|cad)_/.test(walletId) ? walletId : undefined
  const isListed = paid === undefined || data?.some(({ id }) => id === paid) === true
  const wallets: readonly RefundingWallet[] | undefined = isListed ? data : [{ id: paid, name: null }, ...(data ?? [])]
  return { paid, wallets }
}

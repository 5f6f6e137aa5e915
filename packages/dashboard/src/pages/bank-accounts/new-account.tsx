import type { NewBankAccount } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { bankAccountsKey } from './queries.ts'

interface Detail {
  readonly member: 'sortCode' | 'accountNumber' | 'routingNumber' | 'iban' | 'swiftBic'
  readonly label: string
  readonly hint: string
}

const accountNumber = (hint: string): Detail => ({ member: 'accountNumber', label: 'Account number', hint })

const currencies: Readonly<Record<string, readonly Detail[]>> = {
  GBP: [
    { member: 'sortCode', label: 'Sort code', hint: '6 digits, such as 20-29-59.' },
    accountNumber('8 digits. Pad a shorter number with zeros in front.'),
  ],
  USD: [
    { member: 'routingNumber', label: 'Routing number', hint: '9 digits (ABA).' },
    accountNumber('4 to 17 digits.'),
  ],
  EUR: [
    { member: 'iban', label: 'IBAN', hint: 'Such as DE89 3704 0044 0532 0130 00.' },
    { member: 'swiftBic', label: 'BIC', hint: '8 or 11 characters.' },
  ],
}

/** Registers a bank account. The details are sent once and never shown again. */
export function NewAccountSheet({ onClose }: { onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [accountName, setAccountName] = useState('')
  const [currency, setCurrency] = useState('GBP')
  const [details, setDetails] = useState<Readonly<Record<string, string>>>({})
  const fields = currencies[currency] ?? []
  const isReady = accountName.trim() !== '' && fields.every(({ member }) => (details[member] ?? '').trim() !== '')
  const body: NewBankAccount = {
    accountName: accountName.trim(),
    currency,
    ...Object.fromEntries(fields.map(({ member }) => [member, details[member] ?? ''])),
  }
  const create = useMutation({
    mutationFn: () => purser.withdrawals.bankAccounts.create(body),
    onSuccess: ({ maskedAccount }) => {
      toastDone(`Bank account ${maskedAccount} is registered`)
      void queries.invalidateQueries({ queryKey: bankAccountsKey })
      onClose()
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Add a bank account"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={create.isPending} disabled={!isReady} onClick={() => create.mutate()}>
            Add the {currency} account
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-2">
          Withdrawals can be paid to this account by everybody whose role and policy allow them. The details are stored
          encrypted; only the last four characters are shown again.
        </p>
        <Field label="Account holder">
          {(wiring) => (
            <TextInput
              {...wiring}
              maxLength={140}
              value={accountName}
              onChange={({ target }) => setAccountName(target.value)}
            />
          )}
        </Field>
        <Field label="Currency">
          {(wiring) => (
            <Select {...wiring} value={currency} onChange={({ target }) => setCurrency(target.value)}>
              {Object.keys(currencies).map((one) => (
                <option key={one}>{one}</option>
              ))}
            </Select>
          )}
        </Field>
        {fields.map(({ member, label, hint }) => (
          <Field key={`${currency}-${member}`} label={label} hint={hint}>
            {(wiring) => (
              <TextInput
                {...wiring}
                className="font-mono"
                maxLength={42}
                value={details[member] ?? ''}
                onChange={({ target }) => setDetails((old) => ({ ...old, [member]: target.value }))}
              />
            )}
          </Field>
        ))}
        {create.error !== null && <ErrorBlock error={create.error} />}
      </div>
    </Sheet>
  )
}

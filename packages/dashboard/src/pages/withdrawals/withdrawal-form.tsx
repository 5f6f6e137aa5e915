import type { BankAccount, MasterWallet } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import { Field, Select } from '../../ui/form.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { Amount } from '../../ui/values.tsx'
import { accountLabel, useBankAccounts } from '../bank-accounts/queries.ts'
import { AmountFields, ReferenceField, WalletField } from '../transfers/transfer-form.tsx'
import { useManagedWallets, walletLabel } from '../transfers/wallets.ts'

export interface WithdrawalDraft {
  readonly walletId: string
  readonly token: string
  readonly amount: string
  readonly bankAccountId: string
  readonly reference: string
}

export const emptyWithdrawal: WithdrawalDraft = {
  walletId: '',
  token: '',
  amount: '',
  bankAccountId: '',
  reference: '',
}

interface FormProps {
  readonly draft: WithdrawalDraft
  readonly onChange: (draft: WithdrawalDraft) => void
}

export function WithdrawalForm({ draft, onChange }: FormProps) {
  const wallets = useManagedWallets()
  const accounts = useBankAccounts()
  const choose = (walletId: string) => {
    const token = wallets.data?.find(({ id }) => id === walletId)?.supportedTokens[0] ?? ''
    onChange({ ...draft, walletId, token })
  }
  return (
    <>
      <WalletField walletId={draft.walletId} onChoose={choose} />
      <AmountFields
        {...draft}
        onAmount={(amount) => onChange({ ...draft, amount })}
        onToken={(token) => onChange({ ...draft, token })}
      />
      <Field
        label="To"
        hint={
          accounts.data?.length === 0 && (
            <>
              You have no bank account.{' '}
              <Link to="/bank-accounts" className="text-accent-text underline">
                Add one
              </Link>{' '}
              first.
            </>
          )
        }
      >
        {(wiring) => (
          <Select
            {...wiring}
            value={draft.bankAccountId}
            onChange={({ target }) => onChange({ ...draft, bankAccountId: target.value })}
          >
            <option value="">Choose a bank account</option>
            {accounts.data?.map((account) => (
              <option key={account.id} value={account.id}>
                {accountLabel(account)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <ReferenceField
        hint="Optional."
        value={draft.reference}
        onChange={(reference) => onChange({ ...draft, reference })}
      />
    </>
  )
}

/** Describes a withdrawal for confirmation, before anything moves. */
export function WithdrawalReview({
  draft,
  wallet,
  account,
}: {
  draft: WithdrawalDraft
  wallet: MasterWallet
  account: BankAccount
}) {
  return (
    <>
      <p>
        <strong className="font-medium">
          <Amount value={draft.amount} token={draft.token} />
        </strong>{' '}
        leaves {walletLabel(wallet)} and is converted to {account.currency} by the payout partner. It cannot be
        reversed.
      </p>
      <Facts>
        <Fact name="To">{account.accountName}</Fact>
        <Fact name="Account">
          <span className="num">{account.maskedAccount}</span> {account.currency}
        </Fact>
        <Fact name="Rate and fee">The payout partner sets both at conversion.</Fact>
        {draft.reference !== '' && <Fact name="Reference">{draft.reference}</Fact>}
      </Facts>
    </>
  )
}

import type { BankAccount } from '@purser/sdk'
import { CreditCard, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { createdColumn } from '../../ui/created-column.tsx'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Id } from '../../ui/values.tsx'
import { DeleteAccountSheet } from './delete-account.tsx'
import { NewAccountSheet } from './new-account.tsx'
import { bankAccountsKey } from './queries.ts'

/** The bank accounts of the organisation. Their numbers are never shown again. */
export function BankAccountsPage() {
  const purser = usePurser()
  const mayChange = useMay('member')
  const [isAdding, setAdding] = useState(false)
  const [deleting, setDeleting] = useState<BankAccount>()
  const listing = useListing([...bankAccountsKey, 'list'], (query, options) =>
    purser.withdrawals.bankAccounts.list(query, options).page(),
  )
  const add = mayChange && (
    <Button tone="primary" onClick={() => setAdding(true)}>
      <Plus aria-hidden /> Add a bank account
    </Button>
  )
  const remove = mayChange ? setDeleting : undefined
  return (
    <Page title="Bank accounts" state={summaryOf(listing)} action={add} wide>
      <ListCard
        label="Bank accounts"
        listing={listing}
        columns={columnsWith(remove)}
        rowKey={rowKey}
        compact={(row) => <CompactAccount row={row} onDelete={remove} />}
        empty={
          <Empty icon={<CreditCard />} title="No bank accounts yet" action={add}>
            Add the account that withdrawals are paid to. Only its last four characters are shown later.
          </Empty>
        }
      />
      {isAdding && <NewAccountSheet onClose={() => setAdding(false)} />}
      {deleting !== undefined && <DeleteAccountSheet account={deleting} onClose={() => setDeleting(undefined)} />}
    </Page>
  )
}

const rowKey = ({ id }: BankAccount) => id

function summaryOf({ rows, hasMore }: { readonly rows: readonly unknown[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'Bank accounts for withdrawals.'
  return `${hasMore ? 'More than ' : ''}${count(rows.length, 'bank account')} can be paid.`
}

type OnDelete = ((account: BankAccount) => void) | undefined

function columnsWith(onDelete: OnDelete): readonly Column<BankAccount>[] {
  return [
    {
      id: 'name',
      head: 'Name',
      cell: ({ accountName }) => <span className="font-medium">{accountName}</span>,
    },
    { id: 'currency', head: 'Currency', width: 'w-25', cell: ({ currency }) => <Tag>{currency}</Tag> },
    {
      id: 'account',
      head: 'Account',
      width: 'w-28',
      cell: ({ maskedAccount }) => <span className="num">{maskedAccount}</span>,
    },
    { id: 'id', head: 'Id', width: 'w-39', from: 'lg', cell: ({ id }) => <Id value={id} /> },
    createdColumn('Added', 'lg'),
    ...(onDelete === undefined
      ? []
      : [
          {
            id: 'delete',
            head: <span className="sr-only">Delete</span>,
            align: 'right' as const,
            width: 'w-14',
            cell: (row: BankAccount) => <DeleteButton row={row} onDelete={onDelete} />,
          },
        ]),
  ]
}

function DeleteButton({ row, onDelete }: { row: BankAccount; onDelete: (account: BankAccount) => void }) {
  return (
    <IconButton label={`Delete ${row.accountName}`} onClick={() => onDelete(row)}>
      <Trash2 aria-hidden />
    </IconButton>
  )
}

function CompactAccount({ row, onDelete }: { row: BankAccount; onDelete: OnDelete }) {
  return (
    <span className="flex items-center justify-between gap-3">
      <span className="min-w-0">
        <span className="block truncate font-medium">{row.accountName}</span>
        <span className="num block text-sm text-ink-2">
          {row.currency} {row.maskedAccount}
        </span>
      </span>
      {onDelete !== undefined && <DeleteButton row={row} onDelete={onDelete} />}
    </span>
  )
}

import type { ChildAddress, MasterWallet } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { GitBranch, Plus } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { createdColumn } from '../../ui/created-column.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty } from '../../ui/page.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Id, OnChain } from '../../ui/values.tsx'
import { HolderBalance } from './columns.tsx'
import { walletsKey } from './queries.ts'
import { SweepButton } from './sweep-dialog.tsx'
import { walletPath } from './wallet-path.ts'

/** The addresses that were derived from the wallet, for a customer each. */
export function WalletChildren({ wallet }: { wallet: MasterWallet }) {
  const purser = usePurser()
  const mayCreate = useMay('member') && wallet.provisionStatus === 'active'
  const [isAdding, setAdding] = useState(false)
  const navigate = useNavigate()
  const open = useCallback(
    ({ id }: ChildAddress) => void navigate({ to: '/wallets/$walletId', params: { walletId: id } }),
    [navigate],
  )
  const listing = useListing([...walletsKey, 'children', wallet.id], (query, options) =>
    purser.wallets.children.list(wallet.id, query, options).page(),
  )
  const add = mayCreate && (
    <Button onClick={() => setAdding(true)}>
      <Plus aria-hidden /> Create a child address
    </Button>
  )
  return (
    <>
      {listing.rows.length > 0 && (
        <div className="flex justify-end gap-2">
          <SweepButton wallet={wallet} />
          {add}
        </div>
      )}
      <ListCard
        label="Child addresses"
        listing={listing}
        columns={columnsOn(wallet.chain)}
        rowKey={rowKey}
        compact={compact}
        onOpen={open}
        empty={
          <Empty icon={<GitBranch />} title="No child addresses yet" action={add}>
            Give each customer an address of their own to see who paid. The wallet’s policy applies to its child
            addresses too.
          </Empty>
        }
      />
      {isAdding && <NewChildDialog walletId={wallet.id} onClose={() => setAdding(false)} />}
    </>
  )
}

const rowKey = ({ id }: ChildAddress) => id

function columnsOn(chain: string): readonly Column<ChildAddress>[] {
  return [
    { id: 'name', head: 'Name', cell: (row) => <ChildName row={row} /> },
    {
      id: 'balance',
      head: 'Balance',
      align: 'right',
      width: 'w-42',
      cell: (row) => <HolderBalance holder={row} />,
    },
    {
      id: 'address',
      head: 'Address',
      width: 'w-42',
      cell: ({ address }) => <OnChain value={address} network={chain} kind="address" />,
    },
    { id: 'id', head: 'Child address', width: 'w-39', from: 'lg', cell: ({ id }) => <Id value={id} /> },
    createdColumn(),
  ]
}

function ChildName({ row: { id, name } }: { row: ChildAddress }) {
  return (
    <RowLink to={walletPath(id)}>
      {name === null ? (
        <span className="text-ink-3">no name</span>
      ) : (
        <span className="truncate font-medium">{name}</span>
      )}
    </RowLink>
  )
}

const compact = (row: ChildAddress) => (
  <>
    <ChildName row={row} />
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <Id value={row.address} />
      <HolderBalance holder={row} />
    </span>
  </>
)

function NewChildDialog({ walletId, onClose }: { walletId: string; onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const { key, onError } = useIdempotencyKey()
  const [name, setName] = useState('')
  const create = useMutation({
    mutationFn: () =>
      purser.wallets.children.create(
        walletId,
        { ...(name.trim() !== '' && { name: name.trim() }) },
        { idempotencyKey: key },
      ),
    onError,
    onSuccess: () => {
      toastDone('The child address is created')
      void queries.invalidateQueries({ queryKey: [...walletsKey, 'children', walletId] })
      onClose()
    },
  })
  return (
    <ActionDialog
      title="Create a child address"
      act="Create the address"
      keep="Cancel"
      tone="primary"
      action={create}
      onClose={onClose}
    >
      <Field label="Name" hint="Such as the customer that it is for.">
        {(wiring) => (
          <TextInput {...wiring} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
        )}
      </Field>
    </ActionDialog>
  )
}

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useWorkspace } from '../../api/context.ts'
import { base } from '../../api/scope.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { Dialog } from '../../ui/overlay.tsx'
import { Card } from '../../ui/page.tsx'

/** For an owner: the deletion of the organisation, which a dialog repeats in words and confirms by its name. */
export function DeleteOrganisation() {
  const { organisation } = useWorkspace()
  const [isOpen, setOpen] = useState(false)
  return (
    <Card title="Delete the organisation">
      <p className="text-ink-2">
        Both environments end. It is possible once no payment, transfer, withdrawal, refund or approval is under way,
        all live wallets are empty (frozen money aside) and retired, and buyers have no paid vault or session that they
        can still use.
      </p>
      <Button tone="danger" className="mt-3" onClick={() => setOpen(true)}>
        Delete {organisation.name.slice(0, 24)}
      </Button>
      {isOpen && <DeleteDialog onClose={() => setOpen(false)} />}
    </Card>
  )
}

function DeleteDialog({ onClose }: { onClose: () => void }) {
  const { purser, organisation } = useWorkspace()
  const [typed, setTyped] = useState('')
  const end = useMutation({
    mutationFn: () => purser.organisations.delete(organisation.id),
    // The page is of an organisation that is gone: it is loaded anew, in another one if there is one.
    onSuccess: () => location.assign(base),
  })
  const isNamed = typed.trim() === organisation.name.trim()
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Delete ${organisation.name}`}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button tone="danger" busy={end.isPending} disabled={!isNamed} onClick={() => end.mutate()}>
            Delete the organisation
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <ul className="list-disc pl-5 text-ink-2">
          <li>All API keys and vault tokens stop working at once, in test and in live.</li>
          <li>All members, also you, lose access, and invitations end.</li>
          <li>Webhooks are turned off, bank accounts are deleted, and nothing more is sold.</li>
          <li>
            Records of payments and the audit log stay with the operator, and vaults until their end. Persisted vaults
            are deleted after 31 days. Only the operator can restore the organisation.
          </li>
        </ul>
        <Field label={`Type “${organisation.name}” to confirm`}>
          {(wiring) => <TextInput {...wiring} value={typed} onChange={({ target }) => setTyped(target.value)} />}
        </Field>
        {end.error !== null && <ErrorBlock error={end.error} onRetry={() => end.mutate()} />}
      </div>
    </Dialog>
  )
}

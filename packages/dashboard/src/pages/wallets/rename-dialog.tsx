import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { Dialog } from '../../ui/overlay.tsx'
import { walletsKey } from './queries.ts'

interface RenameDialogProps {
  readonly what: 'wallet' | 'child address'
  readonly name: string | null
  /** Null removes the name. */
  readonly onSave: (name: string | null) => Promise<unknown>
  readonly onClose: () => void
}

export function RenameDialog({ what, name: present, onSave, onClose }: RenameDialogProps) {
  const queries = useQueryClient()
  const [name, setName] = useState(present ?? '')
  const rename = useMutation({
    mutationFn: () => onSave(name.trim() === '' ? null : name.trim()),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
    },
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Rename this ${what}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={rename.isPending} onClick={() => rename.mutate()}>
            Save the name
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Field label="Name" hint="Without a name, the id is shown.">
          {(wiring) => (
            <TextInput {...wiring} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
          )}
        </Field>
        {rename.error !== null && <ErrorBlock error={rename.error} />}
      </div>
    </Dialog>
  )
}

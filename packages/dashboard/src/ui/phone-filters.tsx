import { ListFilter } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { classes } from './classes.ts'

/** The filters of a list. On a phone a button opens them, and shows how many are set. */
export function PhoneFilters({ chosen, children }: { chosen: number; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="sm:hidden">
        <ListFilter aria-hidden /> {chosen > 0 ? `Filters (${chosen})` : 'Filters'}
      </Button>
      <div className={classes('grid-cols-2 gap-2 sm:contents', isOpen ? 'order-1 grid w-full' : 'hidden')}>
        {children}
      </div>
    </>
  )
}

import { createRootRoute, createRoute } from '@tanstack/react-router'
import { PageFailed, PageNotFound } from './page-failures.tsx'
import { Shell } from './shell.tsx'

export const rootRoute = createRootRoute({ notFoundComponent: PageNotFound })

/** Parent of every page: the rail, the bar of the test environment, the palette. A page that fails leaves them as they are. */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  component: Shell,
  errorComponent: PageFailed,
  notFoundComponent: PageNotFound,
})

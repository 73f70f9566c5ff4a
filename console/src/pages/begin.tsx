import { Loader, Text } from '@mantine/core'
import { useEffect, useState } from 'react'

// Begin is shown until the control plane has answered once.
export function Begin() {
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 1500)
    return () => clearTimeout(timer)
  }, [])
  return (
    <main className="signin" aria-busy="true">
      {late && <><Loader /><Text c="dimmed" mt="md" role="status">The control plane does not answer yet. The page tries again.</Text></>}
    </main>
  )
}

"""What authors of skills are told: objections, a skeleton to start from, and what a skill costs."""
